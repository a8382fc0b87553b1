#include "kernels/plan/plan_cost.h"

#include "absl/hash/hash.h"

namespace opmill {

ProgramCost CostOf(const OperatorPlan& plan) {
  ProgramCost cost = {.kept_bytes = PlanBytes(plan), .scratch_bytes = plan.scratch_bytes};
  for (const KernelPermutation& kernel : plan.kernels) cost.kernels.push_back(absl::HashOf(kernel));
  return cost;
}

}  // namespace opmill
