// Descriptors of the operators with messages of their own, made from their schemas.
#ifndef OPMILL_TESTS_CONFORMANCE_OPERATOR_VARIANTS_H_
#define OPMILL_TESTS_CONFORMANCE_OPERATOR_VARIANTS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/operator_schema.h"
#include "tests/conformance/random.h"

namespace opmill {

// An operator with a value for each of its choices: "reduce" with the function SUM.
struct OperatorVariant {
  const OperatorSchema* schema = nullptr;
  std::vector<AttributeValue> attributes;  // only those that are choices matter

  bool has_one_axis() const;  // and takes no set of axes
  OperatorDesc example() const { return {.schema = schema, .attributes = attributes}; }
};

// Of operators that work along axes of one tensor or element by element, for `type`.
std::vector<OperatorVariant> VariantsOf(DataType type);

// The variant of this first input over these axes, or over the last of them. Flags, numbers and the
// types of outputs are random. Further inputs have the sizes and type of the first one.
absl::StatusOr<OperatorDesc> MakeDesc(
    const OperatorVariant& variant, const TensorDesc& input, const std::vector<uint32_t>& axes,
    absl::FunctionRef<std::vector<uint32_t>(const std::vector<uint32_t>& sizes)> strides_of_others,
    Random& random);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_OPERATOR_VARIANTS_H_
