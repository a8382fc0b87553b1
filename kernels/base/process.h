// Program startup, environment and console output, which differ between operating systems. All
// texts are UTF-8.
#ifndef OPMILL_KERNELS_BASE_PROCESS_H_
#define OPMILL_KERNELS_BASE_PROCESS_H_

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace opmill {

// Call this first in main. Makes the Windows console display output as UTF-8.
void WriteUtf8ToConsole();

// main's arguments without the program name.
std::vector<std::string> Arguments(int argc, char** argv);

std::optional<std::string> Environment(const char* name);
// Sets the variable if it has no value yet.
void SetDefaultEnvironment(const char* name, const char* value);

// Switches `file` to binary mode: bytes pass unchanged, including line feeds on Windows.
void UseBytes(FILE* file);

// True if stderr is a terminal that supports escape sequences.
bool StderrIsTerminal();

absl::StatusOr<FILE*> OpenForAppending(const std::string& path);
// Redirects `file` to the file that now has this path, and creates it if necessary. On failure
// `file` stays with the old one. Other threads may write to `file` meanwhile. Returns Unimplemented
// on Windows, where a file that is being written cannot be moved.
absl::Status ReopenForAppending(FILE* file, const std::string& path);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_PROCESS_H_
