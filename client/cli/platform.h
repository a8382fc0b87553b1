// What differs between systems in how a program is started. Texts are UTF-8.
#ifndef OPMILL_CLIENT_CLI_PLATFORM_H_
#define OPMILL_CLIENT_CLI_PLATFORM_H_

#include <optional>
#include <string>
#include <vector>

namespace opmill {

// main's arguments, without the program's name.
std::vector<std::string> Arguments(int argc, char** argv);

std::optional<std::string> Environment(const char* name);
// Where the variable has no value yet.
void SetDefaultEnvironment(const char* name, const char* value);

// A terminal that takes escape sequences.
bool StderrIsTerminal();

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_PLATFORM_H_
