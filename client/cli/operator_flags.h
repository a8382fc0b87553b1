// The command-line flags of operators, generated from the engine's schemas.
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

// One flag per attribute of any operator, --index_type and --feature_level; then the verb's own
// flags.
std::vector<Flag> OperatorFlags(std::vector<Flag> own);
// --dtype and --shape, for verbs without input files.
std::vector<Flag> TensorFlags();

// argmin, argmax, ...
std::vector<std::string> OperatorNames();
// The name of the flag: "direction" for axis_direction, "axes" for both axis and axes.
std::string FlagOf(const AttributeSchema& attribute);

// The tensor that --dtype and --shape describe.
TensorDesc ReadTensor(FlagReader& flags);

// Reports an error in `flags` if no operator has the name that the user typed.
void CheckOperatorName(const std::string& op, FlagReader& flags);

// Parses a value of a kChoice attribute by name, ignoring case. For functions, also accepts the
// names of other libraries: "mean", "prod", "lse", "logsumexp". The error lists the choices.
absl::StatusOr<uint32_t> ParseChoice(const OperatorSchema& schema, const AttributeSchema& attribute,
                                     absl::string_view name);

// Errors are reported in `flags`, including flags that this operator does not have.
OperatorChoice ReadOperatorChoice(const OperatorSchema& schema, FlagReader& flags);
// The same, by the operator's name, with `input` as the descriptor of every input.
v1::OperatorDesc ReadOperator(const std::string& op, const TensorDesc& input, FlagReader& flags);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
