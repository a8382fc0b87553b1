// What differs between systems in how a program is started and speaks. Texts are UTF-8.
#ifndef OPMILL_KERNELS_BASE_PROCESS_H_
#define OPMILL_KERNELS_BASE_PROCESS_H_

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace opmill {

// First thing in main: a console shows what is written to it as UTF-8.
void WriteUtf8ToConsole();

// main's arguments, without the program's name.
std::vector<std::string> Arguments(int argc, char** argv);

std::optional<std::string> Environment(const char* name);
// Where the variable has no value yet.
void SetDefaultEnvironment(const char* name, const char* value);

// From now on bytes go through it as they are, also line feeds on Windows.
void UseBytes(FILE* file);

// A terminal that takes escape sequences.
bool StderrIsTerminal();

absl::StatusOr<FILE*> OpenForAppending(const std::string& path);
// `file` goes on in the file that has the path now, which is made where there is none; in the old
// one where that fails. Any thread may write to `file` meanwhile. Unimplemented on Windows, where
// nobody can move a file away that is being written.
absl::Status ReopenForAppending(FILE* file, const std::string& path);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_PROCESS_H_
