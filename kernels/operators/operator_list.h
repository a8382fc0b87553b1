// All operators: the families of operator_list.inc.
#ifndef OPMILL_KERNELS_OPERATORS_OPERATOR_LIST_H_
#define OPMILL_KERNELS_OPERATORS_OPERATOR_LIST_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

// Where an operator's functions are.
enum class OperatorFamily : uint32_t {
#define OPMILL_FAMILY(Name) k##Name,
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY
};

// All operators, by family, in the order of operator_list.inc.
absl::Span<const OperatorSchema* const> Operators();
const OperatorSchema* FindSchema(absl::string_view name);  // null if there is none
// The operator's index in Operators().
size_t OperatorIndex(const OperatorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_OPERATOR_LIST_H_
