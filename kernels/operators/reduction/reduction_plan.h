#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_PLAN_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_PLAN_H_

#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/plan/fold.h"

namespace opmill {

// The folding that finds extremes, for arg-reduce and hardmax.
Folding ArgReduceFolding(DataType input, Extreme extreme, AxisDirection direction);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_PLAN_H_
