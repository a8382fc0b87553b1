#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "kernels/base/process_io.h"

namespace opmill {

void WriteUtf8ToConsole() {}  // the default of terminals

std::vector<std::string> Arguments(int argc, char** argv) {
  return std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc);
}

std::optional<std::string> Environment(const char* name) {
  const char* const value = getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::vector<std::string> EnvironmentNames() {
  std::vector<std::string> names;
  for (char* const* variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    names.push_back(text.substr(0, text.find('=')));
  }
  return names;
}

void SetDefaultEnvironment(const char* name, const char* value) {
  setenv(name, value, /*replace=*/0);
}

void UseBytes(FILE*) {}  // the default

bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1; }

absl::StatusOr<FILE*> OpenForAppending(const std::string& path) {
  FILE* const file = fopen(path.c_str(), "ae");
  if (file != nullptr) return file;
  return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be opened for writing"));
}

absl::Status ReopenForAppending(FILE* file, const std::string& path) {
  absl::StatusOr<FILE*> opened = OpenForAppending(path);
  if (!opened.ok()) return opened.status();
  fflush(file);
  const bool replaced = dup3(fileno(*opened), fileno(file), O_CLOEXEC) >= 0;
  absl::Status status;
  if (!replaced) status = absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot take the log"));
  fclose(*opened);
  return status;
}

}  // namespace opmill
