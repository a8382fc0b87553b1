#include "kernels/operators/program_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/lower.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/program/placement.h"

namespace opmill {
namespace {

BufferRole RoleOf(const ValuePlace& place) {
  switch (place.kind) {
    case ValueKind::kInput:
      return BufferRole::Input(place.index);
    case ValueKind::kOutput:
      return BufferRole::Output(place.index);
    case ValueKind::kConstant:
      return BufferRole::Constant(place.index);
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

// Kernels read vectors, which start at multiples of their size.
uint64_t MisplacedElements(const ProgramView& view, const TensorDesc& tensor) {
  return view.first_element % (kVectorBytes / ElementBytes(tensor.data_type));
}

// The view from the vector on that has its first element.
ProgramView WholeVectors(const ProgramNode& node, uint32_t input) {
  const ProgramView& view = node.inputs[input];
  return {view.value, view.first_element - MisplacedElements(view, node.desc.inputs[input])};
}

// Copies what the view spans.
ProgramNode CopyOf(const ProgramView& view, const TensorDesc& tensor, uint32_t copy) {
  const uint64_t elements = SpannedBytes(tensor) / ElementBytes(tensor.data_type);
  const TensorDesc span = {tensor.data_type, {static_cast<uint32_t>(elements)}, {}};
  return {
      .desc = {.schema = &SchemaOf(ElementWiseOp::kIdentity), .inputs = {span}, .outputs = {span}},
      .inputs = {view},
      .outputs = {copy}};
}

// Views that kernels cannot read are copied. Element-wise kernels can read all. `origins` has a
// number for each node, which its copies get too.
Program WithCopies(Program program, std::vector<uint32_t>& origins) {
  std::vector<ProgramNode> nodes;
  std::vector<uint32_t> new_origins;
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    ProgramNode& node = program.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.desc.schema->family == OperatorFamily::kElementWise ||
          MisplacedElements(node.inputs[i], node.desc.inputs[i]) == 0) {
        continue;
      }
      const auto copy = static_cast<uint32_t>(program.values.size());
      nodes.push_back(CopyOf(node.inputs[i], node.desc.inputs[i], copy));
      program.values.push_back({ValueKind::kIntermediate, *nodes.back().desc.outputs[0]});
      node.inputs[i] = copy;
    }
    nodes.push_back(std::move(node));
    new_origins.resize(nodes.size(), origins[n]);
  }
  program.nodes = std::move(nodes);
  origins = std::move(new_origins);
  return program;
}

// Appends the passes of a node to the plan of its program.
void Append(const ProgramNode& node, const Program& program, const ProgramPlaces& places,
            uint64_t scratch_offset, OperatorPlan part, OperatorPlan& plan) {
  std::vector<uint32_t> kernels;
  for (KernelPermutation& kernel : part.kernels) {
    kernels.push_back(KernelIn(plan, std::move(kernel)));
  }
  const auto place = [&](BufferRole& role, uint64_t& offset_bytes) {
    if (role == BufferRole::Scratch()) {
      offset_bytes += scratch_offset;
      return;
    }
    const ValuePlace value = role.kind == BufferRole::Kind::kInput
                                 ? PlaceOf(WholeVectors(node, role.index), program, places)
                                 : places.values[node.outputs[role.index]];
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

absl::StatusOr<OperatorPlan> MakePlan(const Program& validated, const PlanOptions& options,
                                      const std::stop_token& abandoned) {
  std::vector<uint32_t> origins;
  Program lowered = Lower(
      validated, [](const OperatorDesc&) { return false; }, &origins);
  const Program program = WithCopies(std::move(lowered), origins);
  std::vector<OperatorPlan> parts;
  std::vector<uint64_t> scratch_bytes;
  for (const ProgramNode& node : program.nodes) {
    RETURN_IF_ERROR(CheckAbandoned(abandoned));
    std::vector<uint64_t> first_elements;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      first_elements.push_back(MisplacedElements(node.inputs[i], node.desc.inputs[i]));
    }
    ASSIGN_OR_RETURN(OperatorPlan part, MakePlan(node.desc, options, std::move(first_elements)));
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
                       .constant_bytes = RequiredBytes(program, ValueKind::kConstant),
                       .scratch_bytes = places.arena_bytes,
                       .live_bytes = places.live_bytes};
  for (size_t i = 0; i < parts.size(); ++i) {
    RETURN_IF_ERROR(CheckAbandoned(abandoned));
    Append(program.nodes[i], program, places, places.scratch_offsets[i], std::move(parts[i]), plan);
    plan.operators.resize(plan.passes.size(), origins[i]);
  }
  return plan;
}

}  // namespace opmill
