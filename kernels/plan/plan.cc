#include "kernels/plan/plan.h"

#include "kernels/base/errors.h"
#include "kernels/plan/operator_plans.h"

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

// What a device writes down for a dispatch beside the plan: its constants, aligned.
constexpr uint64_t kDeviceBytesPerDispatch = 512;
constexpr uint64_t kBytesPerKernel = 256;  // its names and macros
constexpr uint64_t kFixedBytes = 2048;     // descriptors, entries of tables

}  // namespace

uint64_t PlanBytes(const OperatorPlan& plan) {
  uint64_t bytes = kFixedBytes + plan.kernels.size() * kBytesPerKernel;
  for (const Pass& pass : plan.passes) {
    bytes += sizeof(pass) + pass.fills.size() * sizeof(Fill) +
             pass.dispatches.size() * (sizeof(Dispatch) + kDeviceBytesPerDispatch);
  }
  return bytes;
}

absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options) {
  PlanBuilder builder(options);
  RETURN_IF_ERROR(std::visit(Planner{builder}, desc));
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc& output : OutputsOf(desc)) output_bytes.push_back(RequiredBytes(output));
  return builder.Finish(RequiredBytes(InputOf(desc)), std::move(output_bytes));
}

}  // namespace opmill
