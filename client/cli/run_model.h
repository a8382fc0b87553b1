// opmill run of a model.
#ifndef OPMILL_CLIENT_CLI_RUN_MODEL_H_
#define OPMILL_CLIENT_CLI_RUN_MODEL_H_

#include "client/cli/command_line.h"

namespace opmill {

// Whether the command line runs a model: its name is not that of an operator, and its inputs have
// names.
bool NamesModel(const CommandLine& line);
int RunModel(const CommandLine& line);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_RUN_MODEL_H_
