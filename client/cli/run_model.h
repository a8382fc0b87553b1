// opmill run of a model.
#ifndef OPMILL_CLIENT_CLI_RUN_MODEL_H_
#define OPMILL_CLIENT_CLI_RUN_MODEL_H_

#include "client/cli/command_line.h"

namespace opmill {

// Whether the command line runs a model: what it names is not an operator, and is an ONNX file or
// has inputs with names.
bool NamesModel(const CommandLine& line);
int RunModel(const CommandLine& line);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_RUN_MODEL_H_
