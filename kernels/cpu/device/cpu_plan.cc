#include "kernels/cpu/device/cpu_plan.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/device/sliced_program.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/elementwise/chain_ranges.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/lower.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_cpu.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/program_steps.h"

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

// Gives constants to the operators that keep them in their own form. What is computed from
// constants only, and read only by such operators, is computed here: weights in INT8, which are
// cast and scaled.
class ConstantKeeper {
 public:
  ConstantKeeper(Program& program, std::vector<std::unique_ptr<CpuProgram>>& works,
                 KeptConstants& kept, const std::stop_token& abandoned)
      : program_(program),
        works_(works),
        kept_(kept),
        abandoned_(abandoned),
        readers_(program.values.size()) {
    for (size_t n = 0; n < program.nodes.size(); ++n) {
      for (size_t i = 0; i < program.nodes[n].inputs.size(); ++i) {
        readers_[program.nodes[n].inputs[i].value].push_back({n, i});
      }
    }
  }

  void Run() {
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const ProgramValue& value = program_.values[v];
      if (value.kind != ValueKind::kConstant) continue;
      for (const Reader& reader : readers_[v]) {
        if (abandoned_.stop_requested()) return;
        if (!CanKeep(reader)) continue;
        Keep(reader, {value.constant->digest()}, "", [&] { return value.constant->data(); });
      }
    }
    for (size_t n = 0; n < program_.nodes.size() && !abandoned_.stop_requested(); ++n) {
      if (IsComputedHere(program_.nodes[n])) Compute(n);
    }
  }

 private:
  struct Reader {
    size_t node = 0;
    size_t input = 0;
  };

  bool CanKeep(const Reader& reader) const { return works_[reader.node]->CanKeep(reader.input); }
  // `bytes`, which may be null, are made of the constants with these digests as `form` says.
  void Keep(const Reader& reader, std::vector<std::string> digests, const std::string& form,
            const std::function<const std::byte*()>& bytes) {
    const ProgramNode& node = program_.nodes[reader.node];
    const uint64_t first = node.inputs[reader.input].first_element;
    const uint64_t offset = first * ElementBytes(node.desc.inputs[reader.input].data_type);
    const ConstantInput constant(kept_, {std::move(digests), absl::StrCat(form, " from ", first)},
                                 [&bytes, offset]() -> const std::byte* {
                                   const std::byte* const all = bytes();
                                   return all == nullptr ? nullptr : all + offset;
                                 });
    works_[reader.node]->Keep(reader.input, constant);
  }

  bool IsComputedHere(const ProgramNode& node) const {
    if (node.outputs.size() != 1 ||
        program_.values[node.outputs[0]].kind != ValueKind::kIntermediate) {
      return false;
    }
    const std::vector<Reader>& readers = readers_[node.outputs[0]];
    return std::all_of(readers.begin(), readers.end(),
                       [&](const Reader& reader) { return CanKeep(reader); }) &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [&](const ProgramView& view) {
             return program_.values[view.value].kind == ValueKind::kConstant;
           });
  }

  // Unless another program keeps what is made of it.
  void Compute(size_t n) {
    ProgramNode& node = program_.nodes[n];
    std::vector<std::string> digests;
    std::string form = ToString(node.desc);
    for (const ProgramView& view : node.inputs) {
      digests.push_back(program_.values[view.value].constant->digest());
      absl::StrAppend(&form, " of ", view.first_element);
    }
    TaskMemory::Scope memory;
    const std::byte* computed = nullptr;
    for (const Reader& reader : readers_[node.outputs[0]]) {
      Keep(reader, digests, form, [&] {
        if (computed == nullptr) computed = Compute(node, *works_[n], memory);
        return computed;
      });
    }
    works_[n] = nullptr;
    node = {};
  }

  // Null if it is abandoned.
  const std::byte* Compute(const ProgramNode& node, const CpuProgram& work,
                           TaskMemory::Scope& memory) const {
    std::byte* const output = memory.Take(RequiredBytes(program_.values[node.outputs[0]].tensor));
    RunBuffers buffers = {.scratch = memory.Take(work.scratch_bytes())};
    buffers.outputs[0] = output;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      buffers.inputs[i] =
          program_.values[node.inputs[i].value].constant->data() +
          node.inputs[i].first_element * ElementBytes(node.desc.inputs[i].data_type);
    }
    for (size_t phase = 0; phase < work.phases().size(); ++phase) {
      for (uint64_t task = 0; task < work.phases()[phase]; ++task) {
        if (abandoned_.stop_requested()) return nullptr;
        work.Run(phase, task, buffers);
      }
    }
    return output;
  }

  Program& program_;
  std::vector<std::unique_ptr<CpuProgram>>& works_;
  KeptConstants& kept_;
  const std::stop_token& abandoned_;
  std::vector<std::vector<Reader>> readers_;  // of each value
};

// Whether an input is all of an intermediate, in the order of memory.
bool ReadsWholeIntermediate(const Program& program, const ProgramNode& node, size_t input) {
  const ProgramView& view = node.inputs[input];
  const ProgramValue& value = program.values[view.value];
  const TensorDesc& read = node.desc.inputs[input];
  return value.kind == ValueKind::kIntermediate && view.first_element == 0 && IsPacked(read) &&
         IsPacked(value.tensor) && ElementCount(read) == ElementCount(value.tensor);
}

// Lets operators compute the chains that read their outputs.
class ChainFolder {
 public:
  ChainFolder(Program& program, std::vector<std::unique_ptr<CpuProgram>>& works)
      : program_(program),
        works_(works),
        writers_(program.values.size(), 0),
        reads_(program.values.size(), 0) {
    for (size_t n = 0; n < program.nodes.size(); ++n) {
      for (const uint32_t value : program.nodes[n].outputs) writers_[value] = n;
      for (const ProgramView& view : program.nodes[n].inputs) ++reads_[view.value];
    }
  }

  // The node that computes this one from now on, if there is one. It takes the place of this one,
  // so that all that it reads is written before.
  std::optional<size_t> Fold(size_t n) {
    ProgramNode& node = program_.nodes[n];
    if (works_[n] == nullptr || node.desc.schema->family != OperatorFamily::kElementWise)
      return std::nullopt;
    std::optional<size_t> input;  // what was written last, and is most likely in the cache
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (CanFollow(node, i) &&
          (!input.has_value() || WriterOf(node, *input) < WriterOf(node, i))) {
        input = i;
      }
    }
    if (!input.has_value()) return std::nullopt;
    const size_t writer = WriterOf(node, *input);
    ProgramNode& first = program_.nodes[writer];
    std::unique_ptr<const CpuFollower> follower =
        MakeChainFollower(ChainOf(node.desc), *input, first.inputs.size());
    if (follower == nullptr || !works_[writer]->Follow(follower)) return std::nullopt;
    node.inputs.erase(node.inputs.begin() + static_cast<ptrdiff_t>(*input));
    node.inputs.insert(node.inputs.begin(), first.inputs.begin(), first.inputs.end());
    node.desc = std::move(first.desc);
    works_[n] = std::move(works_[writer]);
    first = {};
    return writer;
  }

 private:
  size_t WriterOf(const ProgramNode& node, size_t input) const {
    return writers_[node.inputs[input].value];
  }

  // Whether nothing else reads the input, which is read in the order of memory.
  bool CanFollow(const ProgramNode& node, size_t input) const {
    const uint32_t index = node.inputs[input].value;
    return ReadsWholeIntermediate(program_, node, input) && reads_[index] == 1 &&
           program_.nodes[writers_[index]].outputs.size() == 1;
  }

  Program& program_;
  std::vector<std::unique_ptr<CpuProgram>>& works_;
  std::vector<size_t> writers_;  // the node that writes each value
  std::vector<size_t> reads_;    // how often nodes read it
};

// A join whose inputs are written where they belong.
class PlacedJoin : public CpuProgram {
 public:
  void Run(size_t /*phase*/, uint64_t /*task*/, const RunBuffers& /*buffers*/) const override {}
};

// Places the inputs of a join directly in its output if each is contiguous there and all are
// intermediates.
class JoinPlacer {
 public:
  explicit JoinPlacer(const Program& program)
      : program_(program), is_part_(program.values.size(), false) {}

  bool CanPlace(const ProgramNode& node) const {
    if (node.desc.schema != &kJoinSchema) return false;
    const TensorDesc& output = *node.desc.outputs[0];
    const auto axis = output.sizes.begin() + node.desc.number("axis");
    if (program_.values[node.outputs[0]].kind != ValueKind::kIntermediate || !IsPacked(output) ||
        std::any_of(output.sizes.begin(), axis, [](uint32_t size) { return size != 1; })) {
      return false;
    }
    absl::flat_hash_set<uint32_t> values;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const uint32_t value = node.inputs[i].value;
      // A kernel fills the last word of its result with zeros, so parts must not share a word.
      const bool ends_a_word =
          SpannedBytes(node.desc.inputs[i]) == RequiredBytes(node.desc.inputs[i]);
      if (!ReadsWholeIntermediate(program_, node, i) || is_part_[value] ||
          !values.insert(value).second || (i + 1 < node.inputs.size() && !ends_a_word)) {
        return false;
      }
    }
    return true;
  }

  void Place(const ProgramNode& node) {
    uint64_t offset = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const uint32_t value = node.inputs[i].value;
      parts_.push_back({.value = value, .whole = node.outputs[0], .offset_bytes = offset});
      offset += SpannedBytes(node.desc.inputs[i]);
      is_part_[value] = true;
    }
  }

  std::vector<ValuePart> Take() && { return std::move(parts_); }

 private:
  const Program& program_;
  std::vector<bool> is_part_;
  std::vector<ValuePart> parts_;
};

// Simplifies a program, of whose nodes these are the works and what they compute.
void Simplify(Program& program, std::vector<std::unique_ptr<CpuProgram>>& works,
              std::vector<std::vector<uint32_t>>& operators, KeptConstants& constants,
              const std::stop_token& abandoned) {
  ConstantKeeper(program, works, constants, abandoned).Run();
  ChainFolder folder(program, works);
  for (size_t n = 0; n < works.size(); ++n) {
    if (const std::optional<size_t> first = folder.Fold(n)) {
      operators[*first].insert(operators[*first].end(), operators[n].begin(), operators[n].end());
      operators[n] = std::move(operators[*first]);
    }
  }
  size_t kept = 0;
  for (size_t n = 0; n < works.size(); ++n) {
    if (works[n] == nullptr) continue;
    if (kept < n) {
      works[kept] = std::move(works[n]);
      operators[kept] = std::move(operators[n]);
    }
    ++kept;
  }
  works.resize(kept);
  std::erase_if(program.nodes, [](const ProgramNode& node) { return node.desc.schema == nullptr; });
}

// Of operators that other devices lower.
bool IsKept(const OperatorDesc& desc) { return HasCpuKernels(desc) || CanSlice(desc); }

}  // namespace

CpuPlan MakeCpuPlan(const Program& program) {
  KeptConstants kept;
  return MakeCpuPlan(program, kept);
}

CpuPlan MakeCpuPlan(const Program& program, KeptConstants& kept, const std::stop_token& abandoned) {
  Program validated = Lower(program, &IsKept);
  CpuPlan plan = {.input_bytes = RequiredBytes(validated, ValueKind::kInput),
                  .output_bytes = RequiredBytes(validated, ValueKind::kOutput)};
  for (const ProgramValue& value : validated.values) {
    if (value.kind == ValueKind::kConstant) plan.constants.push_back(value.constant);
  }
  std::vector<std::unique_ptr<CpuProgram>> works;
  std::vector<std::vector<uint32_t>> operators;
  for (const ProgramNode& node : validated.nodes) {
    if (abandoned.stop_requested()) return plan;
    operators.push_back({static_cast<uint32_t>(works.size())});
    works.push_back(HasCpuKernels(node.desc) ? MakeCpuProgram(node.desc)
                                             : MakeSlicedProgram(node.desc));
  }
  Simplify(validated, works, operators, kept, abandoned);
  if (abandoned.stop_requested()) return plan;
  std::vector<uint64_t> scratch_bytes;
  JoinPlacer joins(validated);
  for (size_t n = 0; n < works.size(); ++n) {
    if (joins.CanPlace(validated.nodes[n])) {
      joins.Place(validated.nodes[n]);
      works[n] = std::make_unique<PlacedJoin>();
    }
    scratch_bytes.push_back(works[n]->scratch_bytes());
    for (size_t phase = 0; phase < works[n]->phases().size(); ++phase) {
      plan.phases.push_back({n, phase, works[n]->phases()[phase]});
    }
    plan.nodes.push_back({.operators = std::move(operators[n]), .work = std::move(works[n])});
  }
  const ProgramPlaces places = Place(validated, scratch_bytes, std::move(joins).Take());
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
  plan.live_bytes = places.live_bytes;
  return plan;
}

ProgramReport ReportOf(const Program& program, const CpuPlan& plan) {
  std::vector<uint32_t> origins;
  const Program lowered = Lower(program, &IsKept, &origins);
  std::vector<std::vector<uint32_t>> nodes;
  for (const CpuNode& node : plan.nodes) nodes.push_back(node.operators);
  ProgramReport report = {.steps = StepsOf(lowered, nodes),
                          .arena_bytes = plan.arena_bytes,
                          .live_bytes = plan.live_bytes};
  for (size_t i = 0; i < report.steps.size(); ++i) {
    ProgramStep& step = report.steps[i];
    step.phases = plan.nodes[i].work->phases();
    if (step.phases.empty()) step.read_bytes = step.written_bytes = 0;
    for (uint32_t& node : step.operators) node = origins[node];
    step.operators.erase(std::unique(step.operators.begin(), step.operators.end()),
                         step.operators.end());
  }
  return report;
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

std::vector<SharedBytes> ConstantsOf(const CpuPlan& plan) {
  std::vector<SharedBytes> constants;
  absl::flat_hash_set<const void*> counted;
  const auto add = [&](const void* memory, uint64_t bytes) {
    if (counted.insert(memory).second) constants.push_back({memory, bytes});
  };
  for (const auto& constant : plan.constants) add(constant.get(), constant->size());
  for (const CpuNode& node : plan.nodes) {
    for (const auto& kept : node.work->kept()) add(kept.get(), kept->bytes());
  }
  return constants;
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
