#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/process.h"

namespace opmill {

void WriteUtf8ToConsole() {}  // terminals take nothing else

std::vector<std::string> Arguments(int argc, char** argv) {
  return std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc);
}

std::optional<std::string> Environment(const char* name) {
  const char* const value = getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

void SetDefaultEnvironment(const char* name, const char* value) {
  setenv(name, value, /*replace=*/0);
}

bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1; }

absl::Status AppendStderrTo(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const int error = file < 0 || dup2(file, STDERR_FILENO) < 0 ? errno : 0;
  if (file >= 0) close(file);
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat(path, " cannot be opened for writing"));
}

}  // namespace opmill
