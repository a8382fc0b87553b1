#include <vector>

#include "kernels/descriptor/operator_schema.h"

namespace opmill {

#define OPMILL_FAMILY(Name) std::vector<const OperatorSchema*> Name##Operators();
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY

absl::Span<const OperatorSchema* const> Operators() {
  static const auto* const operators = [] {
    auto* const all = new std::vector<const OperatorSchema*>;
    for (const auto& family : {
#define OPMILL_FAMILY(Name) Name##Operators(),
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY
         }) {
      all->insert(all->end(), family.begin(), family.end());
    }
    return all;
  }();
  return *operators;
}

}  // namespace opmill
