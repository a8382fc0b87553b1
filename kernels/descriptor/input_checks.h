// Checks that schemas make of inputs that must be like others.
#ifndef OPMILL_KERNELS_DESCRIPTOR_INPUT_CHECKS_H_
#define OPMILL_KERNELS_DESCRIPTOR_INPUT_CHECKS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

// That the input has the number of dimensions of the other one. Errors name its sizes.
absl::Status CheckRank(const OperatorDesc& desc, size_t input, size_t other = 0);
// That it has the type of the other one. Errors name its type.
absl::Status CheckType(const OperatorDesc& desc, size_t input, size_t other = 0);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_INPUT_CHECKS_H_
