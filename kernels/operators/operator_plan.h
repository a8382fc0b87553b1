// The plans of operators.
#ifndef OPMILL_KERNELS_OPERATORS_OPERATOR_PLAN_H_
#define OPMILL_KERNELS_OPERATORS_OPERATOR_PLAN_H_

#include "absl/status/statusor.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/plan.h"

namespace opmill {

// `desc` must have passed Validate. Returns ResourceExhausted if the scratch would exceed the
// limit.
absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_OPERATOR_PLAN_H_
