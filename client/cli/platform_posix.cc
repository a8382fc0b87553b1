#include <stdlib.h>
#include <unistd.h>

#include "client/cli/platform.h"

namespace opmill {

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

}  // namespace opmill
