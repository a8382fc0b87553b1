// Defines which element argmin, argmax and hardmax pick.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_ARG_REFERENCE_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_ARG_REFERENCE_H_

#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/reference/element_access.h"

namespace opmill {

// The position of the picked element among those reduced into `output`.
uint64_t PickPosition(DataType type, const Reader& input, const ReductionShape& shape,
                      const Coordinate& output, Extreme extreme, AxisDirection direction);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_ARG_REFERENCE_H_
