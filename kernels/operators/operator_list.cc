#include "kernels/operators/operator_list.h"

#include <algorithm>
#include <vector>

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

const OperatorSchema* FindSchema(absl::string_view name) {
  const absl::Span<const OperatorSchema* const> operators = Operators();
  const auto found = std::find_if(operators.begin(), operators.end(),
                                  [&](const auto* schema) { return schema->name == name; });
  return found == operators.end() ? nullptr : *found;
}

size_t OperatorIndex(const OperatorDesc& desc) {
  const absl::Span<const OperatorSchema* const> operators = Operators();
  return static_cast<size_t>(std::find(operators.begin(), operators.end(), desc.schema) -
                             operators.begin());
}

}  // namespace opmill
