// Where the dispatches of a plan may read and write, worked out from their constants as the shaders
// do and apart from the planner.
#ifndef OPMILL_TESTS_FUZZ_PLAN_BOUNDS_H_
#define OPMILL_TESTS_FUZZ_PLAN_BOUNDS_H_

#include <string>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/plan.h"

namespace opmill {

// "" when every view lies inside its buffer, every dispatch stays inside its views and covers its
// part of the work once, and the dispatches together write every element of the outputs; else the
// first mistake. What depends on the elements, such as the blocks that top_k searches, is taken at
// its widest.
std::string FindPlanMistake(const OperatorDesc& validated, const PlanOptions& options,
                            const OperatorPlan& plan);

}  // namespace opmill

#endif  // OPMILL_TESTS_FUZZ_PLAN_BOUNDS_H_
