#ifndef OPMILL_KERNELS_DESCRIPTOR_OPERATOR_LIMITS_H_
#define OPMILL_KERNELS_DESCRIPTOR_OPERATOR_LIMITS_H_

#include <cstddef>

namespace opmill {

// Of an operator.
inline constexpr size_t kMaxInputs = 8;
inline constexpr size_t kMaxOutputs = 2;

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_OPERATOR_LIMITS_H_
