#include "kernels/descriptor/operator_schema.h"

namespace opmill {

#define OPMILL_OPERATOR(Name) extern const OperatorSchema k##Name##Schema;
#include "kernels/operators/operator_list.inc"
#undef OPMILL_OPERATOR

absl::Span<const OperatorSchema* const> Operators() {
  static constexpr const OperatorSchema* kOperators[] = {
#define OPMILL_OPERATOR(Name) &k##Name##Schema,
#include "kernels/operators/operator_list.inc"
#undef OPMILL_OPERATOR
  };
  return kOperators;
}

}  // namespace opmill
