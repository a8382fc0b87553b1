#include "kernels/plan/plan.h"

#include "absl/strings/str_cat.h"

namespace opmill {

namespace {

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

}  // namespace opmill
