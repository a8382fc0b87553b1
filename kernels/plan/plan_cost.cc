#include "kernels/plan/plan_cost.h"

#include "absl/hash/hash.h"

namespace opmill {

OperatorCost CostOf(const OperatorPlan& plan) {
  OperatorCost cost = {.kept_bytes = PlanBytes(plan), .scratch_bytes = plan.scratch_bytes};
  for (const KernelPermutation& kernel : plan.kernels) cost.kernels.push_back(absl::HashOf(kernel));
  return cost;
}

}  // namespace opmill
