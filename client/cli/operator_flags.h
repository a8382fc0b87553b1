// Operators as the command line spells them.
#ifndef OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
#define OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_

#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/flag_reader.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

// --function, --axes, --axis, --k, --direction, --index_type, --feature_level; then a verb's own.
std::vector<Flag> OperatorFlags(std::vector<Flag> own);
// --dtype and --shape, for verbs that have no file.
std::vector<Flag> TensorFlags();

// argmin, argmax, ...
std::vector<std::string> OperatorNames();

// What --dtype and --shape say.
v1::TensorDesc ReadTensor(FlagReader& flags);

// Leaves in `flags` that there is no operator of this name, which is what the user typed.
void CheckOperatorName(const std::string& op, FlagReader& flags);

// `op` is such a name. Mistakes are left in `flags`, also flags that this
// operator does not take. Negative axes count from the input's last dimension; what else is wrong
// with sizes, axes and types is the server's to say.
v1::OperatorDesc ReadOperator(const std::string& op, const v1::TensorDesc& input,
                              FlagReader& flags);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
