#include "kernels/plan/plan_cost.h"

#include "absl/hash/hash.h"

namespace opmill {

ProgramCost CostOf(const OperatorPlan& plan) {
  ProgramCost cost = {.kept_bytes = PlanBytes(plan), .scratch_bytes = plan.scratch_bytes};
  for (const uint64_t constant : plan.constant_bytes) cost.kept_bytes += constant;
  for (const KernelPermutation& kernel : plan.kernels) cost.kernels.push_back(absl::HashOf(kernel));
  return cost;
}

}  // namespace opmill
