// Operators as the command line spells them. Which there are, and which flags they take, is what
// the engine's schemas say.
#ifndef OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
#define OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/command_line.h"
#include "client/cli/flag_reader.h"
#include "client/cli/operator_choice.h"
#include "kernels/descriptor/operator_schema.h"
#include "opmill/v1/operator.pb.h"

namespace opmill {

// A flag for each attribute of some operator, --index_type and --feature_level; then a verb's own.
std::vector<Flag> OperatorFlags(std::vector<Flag> own);
// --dtype and --shape, for verbs that have no file.
std::vector<Flag> TensorFlags();

// argmin, argmax, ...
std::vector<std::string> OperatorNames();
// "direction" of axis_direction, "axes" of an axis and of axes.
std::string FlagOf(const AttributeSchema& attribute);

// What --dtype and --shape say.
TensorDesc ReadTensor(FlagReader& flags);

// Leaves in `flags` that there is no operator of this name, which is what the user typed.
void CheckOperatorName(const std::string& op, FlagReader& flags);

// A value of a kChoice attribute by its name, in either case; of a function also other libraries'
// names: "mean", "prod", "lse", "logsumexp". Refuses with a sentence that lists what there is.
absl::StatusOr<uint32_t> ParseChoice(const OperatorSchema& schema, const AttributeSchema& attribute,
                                     absl::string_view name);

// Mistakes are left in `flags`, also flags that this operator does not take.
OperatorChoice ReadOperatorChoice(const OperatorSchema& schema, FlagReader& flags);
// The same by the operator's name, for inputs that all are `input`.
v1::OperatorDesc ReadOperator(const std::string& op, const TensorDesc& input, FlagReader& flags);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
