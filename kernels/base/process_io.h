// Process startup and console output, which differ between systems. All strings are UTF-8.
#ifndef OPMILL_KERNELS_BASE_PROCESS_IO_H_
#define OPMILL_KERNELS_BASE_PROCESS_IO_H_

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace opmill {

// Makes the console show UTF-8. To be called first in main.
void WriteUtf8ToConsole();

// The arguments of main, without the program's name.
std::vector<std::string> Arguments(int argc, char** argv);

std::optional<std::string> Environment(const char* name);
// The names of all variables.
std::vector<std::string> EnvironmentNames();
// Sets the variable if it is not set.
void SetDefaultEnvironment(const char* name, const char* value);

// Disables the conversion of line feeds on Windows.
void UseBytes(FILE* file);

// Whether stderr is a terminal that supports escape sequences.
bool StderrIsTerminal();

absl::StatusOr<FILE*> OpenForAppending(const std::string& path);
// Redirects `file` to the file that now has this path, creating it if necessary. After an error,
// `file` is unchanged. Other threads may write to `file` meanwhile. Unimplemented on Windows, where
// an open file cannot be moved.
absl::Status ReopenForAppending(FILE* file, const std::string& path);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_PROCESS_IO_H_
