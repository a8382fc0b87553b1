// Computes where the dispatches of a plan may read and write, from their constants as the shaders
// do, and independently of the planner.
#ifndef OPMILL_TESTS_PLAN_BOUNDS_PLAN_BOUNDS_H_
#define OPMILL_TESTS_PLAN_BOUNDS_PLAN_BOUNDS_H_

#include <string>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/plan.h"

namespace opmill {

// Returns "" if every view is within its buffer, every dispatch stays within its views and covers
// its part of the work once, and the dispatches together write every element of the outputs;
// otherwise the first mistake. For accesses that depend on the elements, such as the blocks that
// top_k searches, the widest range is assumed.
std::string FindPlanMistake(const OperatorDesc& validated, const PlanOptions& options,
                            const OperatorPlan& plan);

}  // namespace opmill

#endif  // OPMILL_TESTS_PLAN_BOUNDS_PLAN_BOUNDS_H_
