// The ProgramCost of an operator with this plan.
#ifndef OPMILL_KERNELS_PLAN_PLAN_COST_H_
#define OPMILL_KERNELS_PLAN_PLAN_COST_H_

#include "kernels/engine/device.h"
#include "kernels/plan/plan.h"

namespace opmill {

ProgramCost CostOf(const OperatorPlan& plan);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_PLAN_COST_H_
