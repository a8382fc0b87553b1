#include "kernels/operators/program_steps.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr size_t kNoStep = ~size_t{0};

std::string TextOf(const OperatorDesc& desc) {
  std::string text;
  if (desc.schema->family == OperatorFamily::kElementWise) {
    for (const ChainStep& step : ChainOf(desc).steps) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", SchemaOf(step.op).name);
    }
  } else {
    text = std::string(OperatorName(desc));
  }
  for (const TensorDesc& tensor : desc.inputs) {
    absl::StrAppend(&text, " ", absl::StrJoin(tensor.sizes, "x"));
  }
  for (const TensorDesc& tensor : OutputsOf(desc)) {
    absl::StrAppend(&text, " -> ", absl::StrJoin(tensor.sizes, "x"));
  }
  return text;
}

// Strides of 0 repeat elements, other strides leave gaps.
uint64_t BytesRead(const TensorDesc& tensor) {
  return std::min(SpannedBytes(tensor), ElementCount(tensor) * ElementBytes(tensor.data_type));
}

class StepMaker {
 public:
  StepMaker(const Program& program, const std::vector<std::vector<uint32_t>>& nodes)
      : program_(program),
        step_of_node_(program.nodes.size(), kNoStep),
        writers_(program.values.size(), kNoStep),
        is_left_(program.values.size(), false) {
    for (size_t step = 0; step < nodes.size(); ++step) {
      for (const uint32_t n : nodes[step]) step_of_node_[n] = step;
    }
    for (size_t n = 0; n < program.nodes.size(); ++n) {
      for (const uint32_t value : program.nodes[n].outputs) writers_[value] = step_of_node_[n];
    }
    std::vector<bool> is_read(program.values.size(), false);
    for (size_t n = 0; n < program.nodes.size(); ++n) {
      for (const ProgramView& view : program.nodes[n].inputs) {
        is_read[view.value] = true;
        if (writers_[view.value] != step_of_node_[n]) is_left_[view.value] = true;
      }
    }
    for (size_t v = 0; v < is_read.size(); ++v) {
      if (!is_read[v] || program.values[v].kind == ValueKind::kOutput) is_left_[v] = true;
    }
  }

  ProgramStep Make(size_t index, const std::vector<uint32_t>& nodes) const {
    ProgramStep step = {.operators = nodes};
    std::vector<std::pair<ProgramView, const TensorDesc*>> reads;
    for (const uint32_t n : nodes) {
      const ProgramNode& node = program_.nodes[n];
      absl::StrAppend(&step.text, step.text.empty() ? "" : "; ", TextOf(node.desc));
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (writers_[node.inputs[i].value] == index) continue;
        const TensorDesc& tensor = node.desc.inputs[i];
        const bool is_known = std::any_of(reads.begin(), reads.end(), [&](const auto& read) {
          return read.first == node.inputs[i] && *read.second == tensor;
        });
        if (is_known) continue;
        reads.emplace_back(node.inputs[i], &tensor);
        step.read_bytes += BytesRead(tensor);
        const size_t writer = writers_[node.inputs[i].value];
        if (writer != kNoStep) step.inputs.push_back(static_cast<uint32_t>(writer));
      }
      for (const uint32_t value : node.outputs) {
        if (is_left_[value]) step.written_bytes += SpannedBytes(program_.values[value].tensor);
      }
    }
    std::sort(step.inputs.begin(), step.inputs.end());
    step.inputs.erase(std::unique(step.inputs.begin(), step.inputs.end()), step.inputs.end());
    return step;
  }

 private:
  const Program& program_;
  std::vector<size_t> step_of_node_;
  std::vector<size_t> writers_;  // the step that writes each value
  std::vector<bool> is_left_;    // whether not only its step reads each value
};

}  // namespace

std::vector<ProgramStep> StepsOf(const Program& program,
                                 const std::vector<std::vector<uint32_t>>& nodes) {
  const StepMaker maker(program, nodes);
  std::vector<ProgramStep> steps;
  for (size_t i = 0; i < nodes.size(); ++i) steps.push_back(maker.Make(i, nodes[i]));
  return steps;
}

std::vector<ProgramStep> StepsOf(const Program& program) {
  std::vector<std::vector<uint32_t>> nodes;
  for (uint32_t n = 0; n < program.nodes.size(); ++n) nodes.push_back({n});
  return StepsOf(program, nodes);
}

uint64_t BytesMoved(const std::vector<ProgramStep>& steps) {
  uint64_t bytes = 0;
  for (const ProgramStep& step : steps) bytes += step.read_bytes + step.written_bytes;
  return bytes;
}

}  // namespace opmill
