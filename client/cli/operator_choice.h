// An operator as the flags say it, before there are inputs.
#ifndef OPMILL_CLIENT_CLI_OPERATOR_CHOICE_H_
#define OPMILL_CLIENT_CLI_OPERATOR_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

// The operator that users call `name`; null where there is none.
const OperatorSchema* FindOperator(absl::string_view name);

// The attribute that holds its axes; null where it works on each element alone.
const AttributeSchema* AxesAttribute(const OperatorSchema& schema);

// Whether its axes have size 1 in the output.
bool Reduces(const OperatorSchema& schema);
// Whether an output may hold indices.
bool HasIndices(const OperatorSchema& schema);

struct OperatorChoice {
  const OperatorSchema* schema = nullptr;
  std::string axes_flag;                     // "axes" or "axis", as the user wrote it
  std::vector<int64_t> axes;                 // -1 is the last one
  std::vector<AttributeValues> attributes;   // in the schema's order; its axes are left empty
  DataType index_type = DataType::kUnknown;  // the server's choice

  // For inputs of these descriptors, the first of which sentences call `input_name`.
  // InvalidArgument names the flag of an axis that the input does not have, or that is given twice;
  // what else is wrong with sizes and types is the server's to say.
  absl::StatusOr<OperatorDesc> For(std::vector<TensorDesc> inputs,
                                   absl::string_view input_name) const;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_CHOICE_H_
