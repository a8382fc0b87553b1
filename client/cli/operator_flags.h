// Operators as the command line spells them.
#ifndef OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
#define OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// An operator as the flags say it, before there is an input.
struct OperatorChoice {
  std::string name;           // "argmin", ...
  bool reduces = false;       // its axes have size 1 in the output
  std::string axes_flag;      // "axes" or "axis", as the user wrote it
  std::vector<int64_t> axes;  // -1 is the last one
  v1::ReduceFunction function = v1::REDUCE_FUNCTION_UNSPECIFIED;
  v1::AxisDirection direction = v1::AXIS_DIRECTION_UNSPECIFIED;
  v1::DataType index_type = v1::DATA_TYPE_UNSPECIFIED;  // the server's choice
  uint32_t k = 0;

  // For an input of this descriptor, which sentences call `input_name`. InvalidArgument names the
  // flag of an axis that the input has not, or that is given twice; what else is wrong with sizes
  // and types is the server's to say.
  absl::StatusOr<v1::OperatorDesc> For(const v1::TensorDesc& input,
                                       absl::string_view input_name) const;
};

// `op` is such a name. Mistakes are left in `flags`, also flags that this operator does not take.
OperatorChoice ReadOperatorChoice(const std::string& op, FlagReader& flags);
// The same for an input.
v1::OperatorDesc ReadOperator(const std::string& op, const v1::TensorDesc& input,
                              FlagReader& flags);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_FLAGS_H_
