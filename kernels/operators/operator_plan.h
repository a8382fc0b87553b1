// The plans of operators.
#ifndef OPMILL_KERNELS_OPERATORS_OPERATOR_PLAN_H_
#define OPMILL_KERNELS_OPERATORS_OPERATOR_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/plan.h"

namespace opmill {

// `desc` must have passed Validate. Its inputs start at these elements of their buffers, which only
// element-wise operators can read; at 0 where there is none. Returns ResourceExhausted if the
// scratch would exceed the limit.
absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options,
                                      std::vector<uint64_t> first_elements = {});

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_OPERATOR_PLAN_H_
