// One planner per family of operators; MakePlan picks.
#ifndef OPMILL_KERNELS_PLAN_OPERATOR_PLANS_H_
#define OPMILL_KERNELS_PLAN_OPERATOR_PLANS_H_

#include "kernels/descriptor/operator_desc.h"
#include "kernels/operators/reduction/reduction_walk.h"
#include "kernels/plan/plan_builder.h"

namespace opmill {

// The folding that finds extremes, for arg-reduce, hardmax and top_k's champions.
Folding ArgReduceFolding(DataType input, Extreme extreme, AxisDirection direction);

void PlanReduce(PlanBuilder& builder, const ReduceDesc& desc);
void PlanArgReduce(PlanBuilder& builder, const ArgReduceDesc& desc);
absl::Status PlanTopK(PlanBuilder& builder, const TopKDesc& desc);
void PlanHardmax(PlanBuilder& builder, const HardmaxDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_OPERATOR_PLANS_H_
