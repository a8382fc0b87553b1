// The plan of a program: the plans of its nodes, one after the other. Lowered operators are
// replaced by theirs.
#ifndef OPMILL_KERNELS_OPERATORS_PROGRAM_PLAN_H_
#define OPMILL_KERNELS_OPERATORS_PROGRAM_PLAN_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "kernels/plan/plan.h"
#include "kernels/program/program.h"

namespace opmill {

// `validated` must have passed Validate. Its inputs, outputs and constants are those of the plan;
// intermediates are in scratch. Returns ResourceExhausted if the scratch would exceed the limit,
// and Cancelled after a stop of `abandoned`.
absl::StatusOr<OperatorPlan> MakePlan(const Program& validated, const PlanOptions& options,
                                      const std::stop_token& abandoned = {});

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_PROGRAM_PLAN_H_
