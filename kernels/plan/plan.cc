#include "kernels/plan/plan.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/program_plan.h"
#include "kernels/program/lower.h"

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

// The memory of a device for a dispatch, in addition to the plan: aligned constants.
constexpr uint64_t kDeviceBytesPerDispatch = 768;
constexpr uint64_t kBytesPerKernel = 256;  // names and macros, without generated text
constexpr uint64_t kFixedBytes = 2048;     // descriptors and table entries

}  // namespace

std::string ToString(BufferRole role) {
  switch (role.kind) {
    case BufferRole::Kind::kInput:
      return absl::StrCat("input ", role.index);
    case BufferRole::Kind::kOutput:
      return absl::StrCat("output ", role.index);
    case BufferRole::Kind::kConstant:
      return absl::StrCat("constant ", role.index);
    case BufferRole::Kind::kScratch:
      break;
  }
  return "scratch";
}

uint64_t BytesOf(const OperatorPlan& plan, BufferRole role) {
  if (role.kind == BufferRole::Kind::kScratch) return plan.scratch_bytes;
  const std::vector<uint64_t>& bytes = role.kind == BufferRole::Kind::kInput ? plan.input_bytes
                                       : role.kind == BufferRole::Kind::kOutput
                                           ? plan.output_bytes
                                           : plan.constant_bytes;
  return role.index < bytes.size() ? bytes[role.index] : 0;
}

uint64_t PlanBytes(const OperatorPlan& plan) {
  uint64_t bytes = kFixedBytes + plan.kernels.size() * kBytesPerKernel;
  for (const Pass& pass : plan.passes) {
    bytes += sizeof(pass) + pass.fills.size() * sizeof(Fill) +
             pass.dispatches.size() * (sizeof(Dispatch) + kDeviceBytesPerDispatch);
  }
  return bytes;
}

absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options) {
  if (IsLowered(desc)) return MakePlan(ProgramOf(desc), options);
  return MakePlan(desc, options, {});
}

absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options,
                                      std::vector<uint64_t> first_elements) {
  PlanBuilder builder(options, std::move(first_elements));
  RETURN_IF_ERROR(kPlanFunctions[static_cast<size_t>(desc.schema->family)](builder, desc));
  std::vector<uint64_t> input_bytes;
  for (const TensorDesc& input : desc.inputs) input_bytes.push_back(RequiredBytes(input));
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc& output : OutputsOf(desc)) output_bytes.push_back(RequiredBytes(output));
  return builder.Finish(std::move(input_bytes), std::move(output_bytes));
}

}  // namespace opmill
