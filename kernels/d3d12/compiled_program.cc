#include "kernels/d3d12/compiled_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"
#include "kernels/operators/program_steps.h"
#include "kernels/plan/plan_cost.h"

namespace opmill {
namespace {

constexpr uint64_t kMaxViewElements = uint64_t{1} << D3D12_REQ_BUFFER_RESOURCE_TEXEL_COUNT_2_TO_EXP;
constexpr uint64_t kMaxGroups = D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION;
// The constants of a dispatch for a single run, and its instance, which starts at the start of the
// views.
constexpr uint64_t kConstantsStride = RoundUp(KernelConstants::kMaxBytes + sizeof(Instance),
                                              D3D12_CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT);

// Views extend to the end of the last vector; buffers are rounded up accordingly.
uint64_t AddressableBytes(const OperatorPlan& plan, BufferRole role) {
  return RoundUp(BytesOf(plan, role), 16);
}

absl::Status CheckRange(const OperatorPlan& plan, BufferRole role, uint64_t offset, uint64_t size,
                        uint64_t alignment) {
  const uint64_t limit = AddressableBytes(plan, role);
  if (offset % alignment == 0 && offset <= limit && size <= limit - offset) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("The plan uses ", size, " bytes from byte ", offset,
                                          " of ", ToString(role), ", which has ", limit, "."));
}

absl::Status CheckView(const OperatorPlan& plan, const BufferView& view) {
  if (view.element_count == 0) return absl::OkStatus();
  if (view.element_count > kMaxViewElements) {
    return absl::InternalError(absl::StrCat("The plan has a view of ", view.element_count,
                                            " elements; the limit is ", kMaxViewElements, "."));
  }
  return CheckRange(plan, view.role, view.offset_bytes,
                    view.element_count * ViewElementBytes(view.format), 16);
}

absl::Status CheckWritable(BufferRole role) {
  if (role.kind == BufferRole::Kind::kOutput || role.kind == BufferRole::Kind::kScratch) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("The plan writes to ", ToString(role), "."));
}

absl::Status CheckDispatch(const OperatorPlan& plan, const Dispatch& dispatch) {
  if (dispatch.kernel >= plan.kernels.size()) {
    return absl::InternalError(
        absl::StrCat("The plan uses kernel ", dispatch.kernel, " of ", plan.kernels.size(), "."));
  }
  for (const uint32_t groups : dispatch.groups) {
    if (groups == 0 || groups > kMaxGroups) {
      return absl::InternalError(absl::StrCat("The plan dispatches ", groups,
                                              " groups along a dimension; the limit is ",
                                              kMaxGroups, "."));
    }
  }
  for (const BufferView& view : dispatch.reads) RETURN_IF_ERROR(CheckView(plan, view));
  for (const BufferView& view : dispatch.writes) {
    RETURN_IF_ERROR(CheckView(plan, view));
    if (view.element_count != 0) RETURN_IF_ERROR(CheckWritable(view.role));
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const OperatorPlan& plan) {
  for (const Pass& pass : plan.passes) {
    for (const Fill& fill : pass.fills) {
      RETURN_IF_ERROR(CheckWritable(fill.role));
      RETURN_IF_ERROR(CheckRange(plan, fill.role, fill.offset_bytes, fill.size_bytes, 4));
    }
    for (const Dispatch& dispatch : pass.dispatches) {
      RETURN_IF_ERROR(CheckDispatch(plan, dispatch));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ProgramReport D3D12CompiledProgram::Report() const {
  ProgramReport report = {.steps = StepsOf(program()),
                          .arena_bytes = plan_.scratch_bytes,
                          .live_bytes = plan_.live_bytes};
  for (size_t i = 0; i < plan_.operators.size(); ++i) {
    for (const Dispatch& dispatch : plan_.passes[i].dispatches) {
      report.steps[plan_.operators[i]].phases.push_back(GroupsOf(dispatch));
    }
  }
  return report;
}

D3D12CompiledProgram::D3D12CompiledProgram(const Program& program, OperatorPlan plan,
                                           uint64_t generation)
    : CompiledProgram(program, CostOf(plan)),
      plan_(std::move(plan)),
      generation_(generation),
      pace_(program, plan_) {}

absl::StatusOr<std::shared_ptr<const D3D12CompiledProgram>> D3D12CompiledProgram::Create(
    const Program& program, OperatorPlan plan, PipelineCache& pipelines, BufferPool& pool,
    uint64_t generation, const std::stop_token& abandoned) {
  RETURN_IF_ERROR(CheckPlan(plan));
  std::shared_ptr<D3D12CompiledProgram> compiled(
      new D3D12CompiledProgram(program, std::move(plan), generation));
  ASSIGN_OR_RETURN(compiled->pipelines_, pipelines.GetAll(compiled->plan().kernels, abandoned));
  for (const Pass& pass : compiled->plan().passes) {
    compiled->first_dispatch_.push_back(compiled->dispatch_count_);
    compiled->dispatch_count_ += pass.dispatches.size();
  }
  RETURN_IF_ERROR(compiled->KeepWeights(pool, abandoned));
  if (compiled->dispatch_count_ > 0) RETURN_IF_ERROR(compiled->KeepConstants(pool));
  return compiled;
}

absl::Status D3D12CompiledProgram::KeepWeights(BufferPool& pool, const std::stop_token& abandoned) {
  for (const ProgramValue& value : program().values) {
    if (value.kind != ValueKind::kConstant) continue;
    RETURN_IF_ERROR(CheckAbandoned(abandoned));
    const ConstantData& bytes = *value.constant;
    ASSIGN_OR_RETURN(kept_.emplace_back(),
                     DeviceConstants::Create(pool, Placement::kDeviceInput, bytes.size()));
    // Kernels load complete vectors.
    static_assert(ConstantData::kAlignment % 16 == 0);
    std::memcpy(kept_.back().data(), bytes.data(), static_cast<size_t>(RoundUp(bytes.size(), 16)));
  }
  return absl::OkStatus();
}

absl::Status D3D12CompiledProgram::KeepConstants(BufferPool& pool) {
  ASSIGN_OR_RETURN(kept_.emplace_back(),
                   DeviceConstants::Create(pool, Placement::kDeviceConstants,
                                           dispatch_count_ * kConstantsStride));
  constants_address_ = kept_.back().slice().gpu_address();
  std::byte* next = kept_.back().data();
  for (const Pass& pass : plan_.passes) {
    for (const Dispatch& dispatch : pass.dispatches) {
      const absl::Span<const std::byte> constants = dispatch.constants.bytes();
      constexpr Instance kWholeViews = {};
      std::memcpy(next, constants.data(), constants.size());
      std::memcpy(next + constants.size(), &kWholeViews, sizeof(kWholeViews));
      next += kConstantsStride;
    }
  }
  return absl::OkStatus();
}

ConstantsView D3D12CompiledProgram::constants(size_t pass, size_t dispatch) const {
  return {.address = constants_address_ + (first_dispatch_[pass] + dispatch) * kConstantsStride,
          .size_bytes = kConstantsStride};
}

}  // namespace opmill
