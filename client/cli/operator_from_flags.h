// The operator that the flags describe, before its inputs are known.
#ifndef OPMILL_CLIENT_CLI_OPERATOR_FROM_FLAGS_H_
#define OPMILL_CLIENT_CLI_OPERATOR_FROM_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

// The attribute that holds the axes; null for elementwise operators.
const AttributeSchema* AxesAttribute(const OperatorSchema& schema);

// Whether the axes have size 1 in the output.
bool Reduces(const OperatorSchema& schema);
// The flag that chooses the type of outputs: "index_type", "output_type", or "" if none is free.
absl::string_view OutputTypeFlag(const OperatorSchema& schema);

struct OperatorChoice {
  const OperatorSchema* schema = nullptr;
  std::string axes_flag;                      // "axes" or "axis", as given
  std::vector<int64_t> axes;                  // -1 is the last one
  bool has_all_axes = false;                  // instead of `axes`
  std::vector<AttributeValue> attributes;     // in the schema's order; axes are empty
  DataType output_type = DataType::kUnknown;  // of outputs whose type is free; the server's choice

  // The descriptor for these inputs. InvalidArgument if an axis is out of range or repeated;
  // messages call the first input `input_name`. Sizes and types are left for the server to
  // validate.
  absl::StatusOr<OperatorDesc> For(std::vector<TensorDesc> inputs,
                                   absl::string_view input_name) const;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OPERATOR_FROM_FLAGS_H_
