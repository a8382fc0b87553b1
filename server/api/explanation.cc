#include "server/api/explanation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/base/excerpt.h"
#include "kernels/operators/program_steps.h"
#include "proto/duration.h"

namespace opmill {
namespace {

using StepNumbers = std::vector<uint32_t>;

// An answer is not much larger than its number of nodes, however long their names are.
constexpr size_t kMostNameBytes = 256;

std::string Shortened(absl::string_view name) {
  return std::string(BeginningOf(name, kMostNameBytes));
}

// For each operator of the program, the steps that compute it.
std::vector<StepNumbers> StepsOfOperators(const ProgramReport& report) {
  std::vector<StepNumbers> steps;
  for (uint32_t s = 0; s < report.steps.size(); ++s) {
    for (const uint32_t op : report.steps[s].operators) {
      if (op >= steps.size()) steps.resize(op + 1);
      steps[op].push_back(s);
    }
  }
  return steps;
}

StepNumbers StepsOfNode(const onnx::ExplainedNode& node, const std::vector<StepNumbers>& steps) {
  StepNumbers found;
  for (const uint32_t op : node.operators) {
    if (op < steps.size()) found.insert(found.end(), steps[op].begin(), steps[op].end());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

class NodeEncoder {
 public:
  NodeEncoder(const ProgramReport& report, v1::ExplainModelResponse& to)
      : report_(report),
        steps_of_(StepsOfOperators(report)),
        has_first_(report.steps.size(), false),
        to_(to) {}

  void Encode(const onnx::ExplainedNode& from) {
    const auto position = static_cast<uint32_t>(to_.nodes_size());
    const StepNumbers steps = StepsOfNode(from, steps_of_);
    v1::ExplainedNode& node = *to_.add_nodes();
    node.set_name(Shortened(from.name));
    node.set_operator_(Shortened(from.op));
    node.set_fate(FateOf(from, steps));
    for (const uint32_t step : steps) {
      node.add_steps(step);
      to_.mutable_steps(static_cast<int>(step))->add_nodes(position);
    }
  }

 private:
  v1::ExplainedNode::Fate FateOf(const onnx::ExplainedNode& node, const StepNumbers& steps) {
    switch (node.fate) {
      case onnx::NodeFate::kUnused:
        return v1::ExplainedNode::FATE_UNUSED;
      case onnx::NodeFate::kConstant:
        return v1::ExplainedNode::FATE_CONSTANT;
      case onnx::NodeFate::kView:
        return v1::ExplainedNode::FATE_VIEW;
      case onnx::NodeFate::kComputed:
        break;
    }
    if (steps.empty()) return v1::ExplainedNode::FATE_CONSTANT;  // the device has computed it
    if (steps.size() > 1) return v1::ExplainedNode::FATE_SEVERAL;
    const uint32_t first = report_.steps[steps[0]].operators[0];
    const bool is_first = !has_first_[steps[0]] &&
                          std::binary_search(node.operators.begin(), node.operators.end(), first);
    if (!is_first) return v1::ExplainedNode::FATE_FUSED;
    has_first_[steps[0]] = true;
    return v1::ExplainedNode::FATE_STEP;
  }

  const ProgramReport& report_;
  const std::vector<StepNumbers> steps_of_;
  std::vector<bool> has_first_;  // of each step
  v1::ExplainModelResponse& to_;
};

}  // namespace

void EncodeExplanation(const onnx::Explanation* explained, const RunProfile& profile,
                       v1::ExplainModelResponse& to) {
  const ProgramReport& report = profile.report;
  for (size_t s = 0; s < report.steps.size(); ++s) {
    const ProgramStep& from = report.steps[s];
    v1::ExplainedStep& step = *to.add_steps();
    step.set_text(from.text);
    step.set_read_bytes(from.read_bytes);
    step.set_written_bytes(from.written_bytes);
    step.mutable_phases()->Add(from.phases.begin(), from.phases.end());
    step.mutable_inputs()->Add(from.inputs.begin(), from.inputs.end());
    if (s < profile.times.size()) EncodeDuration(profile.times[s], *step.mutable_duration());
  }
  to.set_unfused_steps(explained != nullptr ? explained->unfused_operators : report.steps.size());
  to.set_unfused_bytes(explained != nullptr ? explained->unfused_bytes : BytesMoved(report.steps));
  to.set_arena_bytes(report.arena_bytes);
  to.set_live_bytes(report.live_bytes);
  to.set_threads(profile.threads);
  if (explained == nullptr) return;
  NodeEncoder encoder(report, to);
  for (const onnx::ExplainedNode& node : explained->nodes) encoder.Encode(node);
}

}  // namespace opmill
