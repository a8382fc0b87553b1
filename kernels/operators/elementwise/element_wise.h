// Element-wise operators as data: the rows of element_wise_rows.inc.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

enum class ElementWiseOp : uint32_t {
#define OPMILL_ELEMENT_WISE(inputs, Name, ...) k##Name,
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
};
inline constexpr size_t kElementWiseOps = 0
#define OPMILL_ELEMENT_WISE(...) +1
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
    ;

enum class ElementWiseInputs : uint32_t { kUnary, kBinary, kIf };
enum class ElementWiseResult : uint32_t { kSame, kMove, kBits, kTruth, kCount, kCast };

constexpr bool TakesBits(ElementWiseResult result) {
  return result == ElementWiseResult::kBits || result == ElementWiseResult::kCount;
}

struct ElementWiseRow {
  ElementWiseInputs inputs;
  ElementWiseResult result;
  double ulps;
  absl::string_view expression;
};

const ElementWiseRow& RowOf(ElementWiseOp op);
const OperatorSchema& SchemaOf(ElementWiseOp op);
// nullopt for operators of other families, and for chains.
std::optional<ElementWiseOp> ElementWiseOpOf(const OperatorSchema& schema);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_H_
