#include "kernels/cpu/device/cpu_plan.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "kernels/cpu/device/sliced_program.h"
#include "kernels/operators/lower.h"
#include "kernels/operators/operator_cpu.h"

namespace opmill {
namespace {

// `input(index)` and `output(index)` return addresses.
template <typename Input, typename Output>
RunBuffers Locate(const CpuPlan& plan, const CpuNode& node, std::byte* arena, const Input& input,
                  const Output& output) {
  RunBuffers buffers;
  const auto address_of = [&](const ValuePlace& place) -> const std::byte* {
    switch (place.kind) {
      case ValueKind::kInput:
        return input(place.index) + place.offset_bytes;
      case ValueKind::kConstant:
        return plan.constants[place.index]->data() + place.offset_bytes;
      case ValueKind::kOutput:
        return output(place.index) + place.offset_bytes;
      case ValueKind::kIntermediate:
        break;
    }
    return arena + place.offset_bytes;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) buffers.inputs[i] = address_of(node.inputs[i]);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValuePlace& place = node.outputs[i];
    buffers.outputs[i] =
        place.kind == ValueKind::kOutput ? output(place.index) : arena + place.offset_bytes;
  }
  buffers.scratch = arena + node.scratch_offset;
  return buffers;
}

}  // namespace

CpuPlan MakeCpuPlan(const Program& program) {
  const Program validated = Lower(program, &CanSlice);
  CpuPlan plan = {.input_bytes = RequiredBytes(validated, ValueKind::kInput),
                  .output_bytes = RequiredBytes(validated, ValueKind::kOutput)};
  for (const ProgramValue& value : validated.values) {
    if (value.kind == ValueKind::kConstant) plan.constants.push_back(value.constant);
  }
  std::vector<uint64_t> scratch_bytes;
  for (const ProgramNode& node : validated.nodes) {
    std::unique_ptr<const CpuProgram> work =
        IsLowered(node.desc) ? MakeSlicedProgram(node.desc) : MakeCpuProgram(node.desc);
    scratch_bytes.push_back(work->scratch_bytes());
    for (size_t phase = 0; phase < work->phases().size(); ++phase) {
      plan.phases.push_back({plan.nodes.size(), phase, work->phases()[phase]});
    }
    plan.nodes.push_back({.work = std::move(work)});
  }
  const ProgramPlaces places = Place(validated, scratch_bytes);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    CpuNode& node = plan.nodes[i];
    for (const ProgramView& view : validated.nodes[i].inputs) {
      node.inputs.push_back(PlaceOf(view, validated, places));
    }
    for (const uint32_t value : validated.nodes[i].outputs) {
      node.outputs.push_back(places.values[value]);
    }
    node.scratch_offset = places.scratch_offsets[i];
  }
  plan.arena_bytes = places.arena_bytes;
  return plan;
}

uint64_t ScratchBytes(const CpuPlan& plan, uint64_t threads) {
  uint64_t task_bytes = 0;  // one phase runs at a time
  for (const CpuPhase& phase : plan.phases) {
    task_bytes = std::max(
        task_bytes, plan.nodes[phase.node].work->task_bytes() * std::min(threads, phase.tasks));
  }
  return plan.arena_bytes + task_bytes;
}

uint64_t CostBytes(const CpuPlan& plan) {
  uint64_t bytes = 0;
  for (const CpuNode& node : plan.nodes) bytes += node.work->cost_bytes();
  return bytes;
}

uint64_t BytesOfConstants(const CpuPlan& plan) {
  uint64_t bytes = 0;
  for (const auto& constant : plan.constants) bytes += constant->size();
  return bytes;
}

uint64_t RoundingOf(const CpuPlan& plan) {
  std::vector<uint64_t> all = {1};
  for (const CpuNode& node : plan.nodes) {
    if (node.work->rounding() != 0) all.push_back(node.work->rounding());
  }
  return absl::HashOf(all);
}

RunBuffers BuffersOf(const CpuPlan& plan, const CpuNode& node, const Bindings& bindings,
                     std::byte* arena) {
  return Locate(
      plan, node, arena, [&](uint32_t i) { return bindings.inputs[i].bytes().data(); },
      [&](uint32_t i) { return bindings.outputs[i].bytes().data(); });
}

void RunPlan(const CpuPlan& plan, const RunBuffers& buffers) {
  for (const CpuPhase& phase : plan.phases) {
    const CpuNode& node = plan.nodes[phase.node];
    const RunBuffers of_node = Locate(
        plan, node, buffers.scratch, [&](uint32_t i) { return buffers.inputs[i]; },
        [&](uint32_t i) { return buffers.outputs[i]; });
    for (uint64_t task = 0; task < phase.tasks; ++task) node.work->Run(phase.phase, task, of_node);
  }
}

}  // namespace opmill
