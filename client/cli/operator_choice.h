// An operator as specified by flags, independent of the inputs.
#ifndef OPMILL_CLIENT_CLI_OPERATOR_CHOICE_H_
#define OPMILL_CLIENT_CLI_OPERATOR_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

// The operator with the command-line name `name`; null if there is none.
const OperatorSchema* FindOperator(absl::string_view name);

// The attribute that holds the axes; null for elementwise operators.
const AttributeSchema* AxesAttribute(const OperatorSchema& schema);

// True if the axes have size 1 in the output.
bool Reduces(const OperatorSchema& schema);
// True if an output may hold indices.
bool HasIndices(const OperatorSchema& schema);

struct OperatorChoice {
  const OperatorSchema* schema = nullptr;
  std::string axes_flag;                     // "axes" or "axis", as the user wrote it
  std::vector<int64_t> axes;                 // -1 is the last axis
  std::vector<AttributeValues> attributes;   // in the schema's order; the axes are left empty
  DataType index_type = DataType::kUnknown;  // unknown: the server's default

  // The descriptor for these inputs. Messages call the first one `input_name`. Returns
  // InvalidArgument, naming the flag, if the input has no such axis or an axis is given twice. The
  // server checks everything else.
  absl::StatusOr<OperatorDesc> For(std::vector<TensorDesc> inputs,
                                   absl::string_view input_name) const;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_CHOICE_H_
