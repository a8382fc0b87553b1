// Operators and their flags on the command line, derived from the engine's schemas.
#ifndef OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
#define OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_

#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/command_line_flags.h"
#include "client/cli/command_line_operators.h"
#include "client/cli/operator_from_flags.h"
#include "kernels/descriptor/operator_schema.h"
#include "opmill/v1/operator.pb.h"

namespace opmill {

// Flags for the attributes of all operators, --index_type, --feature_level, and then `own`.
std::vector<Flag> OperatorFlags(std::vector<Flag> own);
// --dtype and --shape, for verbs that do not read files.
std::vector<Flag> TensorFlags();

// The flag of an attribute: "direction" for axis_direction, "axes" for both axis and axes.
std::string FlagOf(const AttributeSchema& attribute);

// The value of a kChoice attribute from its flag, or its default. Errors are recorded in `flags`.
uint32_t ReadChoice(const OperatorSchema& schema, const AttributeSchema& attribute,
                    FlagReader& flags);

// The tensor that --dtype and --shape describe.
TensorDesc ReadTensor(FlagReader& flags);

// Null, with an error in `flags`, if `op` is not the name of an operator.
const NamedOperator* ReadOperatorName(const std::string& op, FlagReader& flags,
                                      absl::string_view hint = "");

// The default of --axes is that of NumPy: all axes for operators that reduce, else the last one.
// Errors are recorded in `flags`, also for flags that this operator does not take.
OperatorChoice ReadOperatorChoice(const NamedOperator& op, FlagReader& flags);
// The same by name, for an operator all of whose inputs are `input`.
v1::OperatorDesc ReadOperator(const std::string& op, const TensorDesc& input, FlagReader& flags);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
