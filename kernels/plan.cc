#include "kernels/plan.h"

#include "kernels/errors.h"
#include "kernels/operator_plans.h"

namespace opmill {
namespace {

struct Planner {
  PlanBuilder& builder;

  absl::Status operator()(const ArgReduceDesc& desc) const {
    PlanArgReduce(builder, desc);
    return absl::OkStatus();
  }
  absl::Status operator()(const ReduceDesc& desc) const {
    PlanReduce(builder, desc);
    return absl::OkStatus();
  }
  absl::Status operator()(const HardmaxDesc& desc) const {
    PlanHardmax(builder, desc);
    return absl::OkStatus();
  }
  absl::Status operator()(const TopKDesc& desc) const { return PlanTopK(builder, desc); }
};

}  // namespace

absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options) {
  PlanBuilder builder(options);
  RETURN_IF_ERROR(std::visit(Planner{builder}, desc));
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc& output : OutputsOf(desc)) output_bytes.push_back(RequiredBytes(output));
  return builder.Finish(RequiredBytes(InputOf(desc)), std::move(output_bytes));
}

}  // namespace opmill
