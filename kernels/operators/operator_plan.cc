#include "kernels/operators/operator_plan.h"

#include <utility>
#include <vector>

#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/lower.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/program_plan.h"
#include "kernels/plan/plan_builder.h"

namespace opmill {

#define OPMILL_LOWERED_FAMILY(Name)
#define OPMILL_FAMILY(Name) absl::Status Plan##Name(PlanBuilder& builder, const OperatorDesc& desc);
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY

namespace {

using PlanFunction = absl::Status (*)(PlanBuilder&, const OperatorDesc&);
constexpr PlanFunction kPlanFunctions[] = {
#define OPMILL_LOWERED_FAMILY(Name) nullptr,
#define OPMILL_FAMILY(Name) &Plan##Name,
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY
};

}  // namespace

absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options,
                                      std::vector<uint64_t> first_elements) {
  if (IsLowered(desc)) return MakePlan(ProgramOf(desc), options);
  PlanBuilder builder(options, std::move(first_elements));
  RETURN_IF_ERROR(kPlanFunctions[static_cast<size_t>(desc.schema->family)](builder, desc));
  std::vector<uint64_t> input_bytes;
  for (const TensorDesc& input : desc.inputs) input_bytes.push_back(RequiredBytes(input));
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc& output : OutputsOf(desc)) output_bytes.push_back(RequiredBytes(output));
  return builder.Finish(std::move(input_bytes), std::move(output_bytes));
}

}  // namespace opmill
