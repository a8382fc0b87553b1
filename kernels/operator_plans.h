// One planner per family of operators; MakePlan picks.
#ifndef OPMILL_KERNELS_OPERATOR_PLANS_H_
#define OPMILL_KERNELS_OPERATOR_PLANS_H_

#include "kernels/operator_desc.h"
#include "kernels/plan_builder.h"
#include "kernels/reduction_plan.h"

namespace opmill {

// The folding that finds extremes, for arg-reduce, hardmax and top_k's champions.
Folding ArgReduceFolding(DataType input, Extreme extreme, AxisDirection direction);

void PlanReduce(PlanBuilder& builder, const ReduceDesc& desc);
void PlanArgReduce(PlanBuilder& builder, const ArgReduceDesc& desc);
absl::Status PlanTopK(PlanBuilder& builder, const TopKDesc& desc);
void PlanHardmax(PlanBuilder& builder, const HardmaxDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATOR_PLANS_H_
