#include "kernels/cpu/device/cpu_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/operators/operator_cpu.h"

namespace opmill {
namespace {

// Of a value that a node writes.
std::byte* AddressOf(const ValuePlace& place, const Bindings& bindings, std::byte* arena) {
  if (place.kind == ValueKind::kOutput) return bindings.outputs[place.index].bytes().data();
  return arena + place.offset_bytes;
}

// Of a value that a node reads.
const std::byte* AddressOf(const ValuePlace& place, const CpuPlan& plan, const Bindings& bindings,
                           std::byte* arena) {
  switch (place.kind) {
    case ValueKind::kInput:
      return bindings.inputs[place.index].bytes().data() + place.offset_bytes;
    case ValueKind::kConstant:
      return plan.constants[place.index]->data() + place.offset_bytes;
    case ValueKind::kOutput:
      return bindings.outputs[place.index].bytes().data() + place.offset_bytes;
    case ValueKind::kIntermediate:
      break;
  }
  return arena + place.offset_bytes;
}

}  // namespace

CpuPlan MakeCpuPlan(const Program& validated) {
  CpuPlan plan = {.input_bytes = RequiredBytes(validated, ValueKind::kInput),
                  .output_bytes = RequiredBytes(validated, ValueKind::kOutput)};
  for (const ProgramValue& value : validated.values) {
    if (value.kind == ValueKind::kConstant) plan.constants.push_back(value.constant);
  }
  std::vector<uint64_t> scratch_bytes;
  for (const ProgramNode& node : validated.nodes) {
    std::unique_ptr<const CpuProgram> work = MakeCpuProgram(node.desc);
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

RunBuffers BuffersOf(const CpuPlan& plan, const CpuNode& node, const Bindings& bindings,
                     std::byte* arena) {
  RunBuffers buffers;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    buffers.inputs[i] = AddressOf(node.inputs[i], plan, bindings, arena);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    buffers.outputs[i] = AddressOf(node.outputs[i], bindings, arena);
  }
  buffers.scratch = arena + node.scratch_offset;
  return buffers;
}

}  // namespace opmill
