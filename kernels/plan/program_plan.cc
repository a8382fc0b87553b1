#include "kernels/plan/program_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/program/lower.h"
#include "kernels/program/placement.h"

namespace opmill {
namespace {

BufferRole RoleOf(const ValuePlace& place) {
  switch (place.kind) {
    case ValueKind::kInput:
      return BufferRole::Input(place.index);
    case ValueKind::kOutput:
      return BufferRole::Output(place.index);
    case ValueKind::kIntermediate:
      break;
  }
  return BufferRole::Scratch();
}

uint32_t KernelIn(OperatorPlan& plan, KernelPermutation kernel) {
  const auto found = std::find(plan.kernels.begin(), plan.kernels.end(), kernel);
  const auto index = static_cast<uint32_t>(found - plan.kernels.begin());
  if (found == plan.kernels.end()) plan.kernels.push_back(std::move(kernel));
  return index;
}

// Appends the passes of a node to the plan of its program.
void Append(const ProgramNode& node, const ProgramPlaces& places, uint64_t scratch_offset,
            OperatorPlan part, OperatorPlan& plan) {
  std::vector<uint32_t> kernels;
  for (KernelPermutation& kernel : part.kernels) {
    kernels.push_back(KernelIn(plan, std::move(kernel)));
  }
  const auto place = [&](BufferRole& role, uint64_t& offset_bytes) {
    if (role == BufferRole::Scratch()) {
      offset_bytes += scratch_offset;
      return;
    }
    const bool is_input = role.kind == BufferRole::Kind::kInput;
    const ValuePlace& value = places.values[(is_input ? node.inputs : node.outputs)[role.index]];
    role = RoleOf(value);
    offset_bytes += value.offset_bytes;
  };
  const auto place_views = [&](auto& views) {
    for (BufferView& view : views) {
      if (view.element_count > 0) place(view.role, view.offset_bytes);
    }
  };
  for (Pass& pass : part.passes) {
    for (Fill& fill : pass.fills) place(fill.role, fill.offset_bytes);
    for (Dispatch& dispatch : pass.dispatches) {
      dispatch.kernel = kernels[dispatch.kernel];
      place_views(dispatch.reads);
      place_views(dispatch.writes);
    }
    plan.passes.push_back(std::move(pass));
  }
}

}  // namespace

absl::StatusOr<OperatorPlan> MakePlan(const Program& validated, const PlanOptions& options) {
  const Program program = Lower(validated);
  std::vector<OperatorPlan> parts;
  std::vector<uint64_t> scratch_bytes;
  for (const ProgramNode& node : program.nodes) {
    ASSIGN_OR_RETURN(OperatorPlan part, MakePlan(node.desc, options));
    scratch_bytes.push_back(part.scratch_bytes);
    parts.push_back(std::move(part));
  }
  const ProgramPlaces places = Place(program, scratch_bytes);
  if (places.arena_bytes > options.max_scratch_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The program needs ", places.arena_bytes,
                     " bytes of scratch memory, more than max_scratch_bytes (",
                     options.max_scratch_bytes, ")."));
  }
  OperatorPlan plan = {.input_bytes = RequiredBytes(program, ValueKind::kInput),
                       .output_bytes = RequiredBytes(program, ValueKind::kOutput),
                       .scratch_bytes = places.arena_bytes};
  for (size_t i = 0; i < parts.size(); ++i) {
    Append(program.nodes[i], places, places.scratch_offsets[i], std::move(parts[i]), plan);
  }
  return plan;
}

}  // namespace opmill
