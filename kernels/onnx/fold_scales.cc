#include "kernels/onnx/fold_scales.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace opmill::onnx {
namespace {

// Weights that are all alike take one number until they are scaled. A Conv packs them in any case.
BuildLimits WithWeights(BuildLimits limits) {
  limits.small_bytes = uint64_t{16} << 20;
  return limits;
}

class ScaleFolder {
 public:
  ScaleFolder(Graph& graph, const BuildLimits& limits)
      : graph_(graph),
        build_(graph.values, scratch_, WithWeights(limits)),
        readers_(graph.values.size(), 0),
        convolutions_(graph.values.size(), nullptr),
        uniform_(graph.values.size(), nullptr),
        replaced_(graph.values.size()) {
    for (const Node& node : graph.nodes) CountReaders(node.inputs);
    for (const Output& output : graph.outputs) CountReaders({output.value});
    for (size_t i = 0; i < replaced_.size(); ++i) replaced_[i] = static_cast<ValueId>(i);
  }

  void Run() {
    std::vector<Node> nodes;
    nodes.reserve(graph_.nodes.size());  // convolutions_ and uniform_ point into it
    for (Node& node : graph_.nodes) {
      for (ValueId& id : node.inputs) id = Replaced(id);
      if (Absorb(node)) continue;
      nodes.push_back(std::move(node));
      if (nodes.back().op == "Conv") convolutions_[nodes.back().outputs[0]] = &nodes.back();
      if (IsOfConstants(nodes.back())) uniform_[nodes.back().outputs[0]] = &nodes.back();
    }
    for (Output& output : graph_.outputs) output.value = Replaced(output.value);
    graph_.nodes = std::move(nodes);
  }

 private:
  void CountReaders(const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id != kNoValue) ++readers_[id];
    }
  }
  ValueId Replaced(ValueId id) const { return id < replaced_.size() ? replaced_[id] : id; }

  // The constant as one number per channel of an output of the convolution; kNoValue if it is not.
  ValueId PerChannel(ValueId constant, const TensorType& output) {
    const Value& value = graph_.values[constant];
    if (value.constant == nullptr || value.type.element != output.element) return kNoValue;
    const Sizes& sizes = value.type.sizes;
    const size_t rank = output.sizes.size();
    if (sizes.size() > rank) return kNoValue;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const size_t dimension = rank - sizes.size() + d;
      if (sizes[d] != 1 && (dimension != 1 || sizes[d] != output.sizes[1])) return kNoValue;
    }
    const ValueId channels = build_.Reshape(constant, {-1});
    return build_.Add("Expand", {channels, build_.Constant({output.sizes[1]})});
  }

  // As a ConstantOfShape, which has become an Expand.
  bool IsOfConstants(const Node& node) const {
    return !node.inputs.empty() &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [this](ValueId id) { return id == kNoValue || IsConstant(id); });
  }

  bool IsConstant(ValueId id) const {
    return id != kNoValue && graph_.values[id].constant != nullptr;
  }

  bool Absorb(const Node& node) {
    if (node.op != "Mul" && node.op != "Add") return false;
    for (const size_t x : {0, 1}) {
      const ValueId id = node.inputs[x];
      Node* const conv = id < convolutions_.size() ? convolutions_[id] : nullptr;
      if (conv == nullptr || readers_[id] != 1) continue;
      const TensorType output = graph_.values[id].type;
      if (graph_.values[node.outputs[0]].type != output) continue;
      const ValueId factor = PerChannel(node.inputs[1 - x], output);
      if (!IsConstant(factor)) continue;
      if (node.op == "Add" ? AbsorbAdd(*conv, factor) : AbsorbMul(*conv, factor)) {
        replaced_[node.outputs[0]] = id;
        readers_[id] = readers_[node.outputs[0]];
        return true;
      }
    }
    return false;
  }

  // With all of its elements, if they are alike.
  ValueId Filter(ValueId id) {
    if (id >= uniform_.size() || uniform_[id] == nullptr) return id;
    const absl::StatusOr<std::vector<ValueId>> added = build_.AddNode(*uniform_[id]);
    return added.ok() ? added->front() : id;
  }

  bool HasBias(const Node& conv) const {
    return conv.inputs.size() > 2 && conv.inputs[2] != kNoValue;
  }

  bool AbsorbAdd(Node& conv, ValueId shift) {
    if (HasBias(conv)) {
      if (!IsConstant(conv.inputs[2])) return false;
      shift = build_.Add("Add", {conv.inputs[2], shift});
      if (!IsConstant(shift)) return false;
    }
    conv.inputs.resize(3);
    conv.inputs[2] = shift;
    return true;
  }

  bool AbsorbMul(Node& conv, ValueId factor) {
    const ValueId filter = Filter(conv.inputs[1]);
    if (!IsConstant(filter)) return false;
    ValueId bias = kNoValue;
    if (HasBias(conv)) {
      if (!IsConstant(conv.inputs[2])) return false;
      bias = build_.Add("Mul", {conv.inputs[2], factor});
      if (!IsConstant(bias)) return false;
    }
    Sizes sizes(graph_.values[filter].type.sizes.size(), 1);
    sizes[0] = -1;
    const ValueId weights = build_.Add("Mul", {filter, build_.Reshape(factor, sizes)});
    if (!IsConstant(weights)) return false;
    conv.inputs[1] = weights;
    if (bias != kNoValue) conv.inputs[2] = bias;
    return true;
  }

  Graph& graph_;
  std::vector<Node> scratch_;  // of what is not constant after all
  Builder build_;
  std::vector<uint32_t> readers_;
  std::vector<Node*> convolutions_;  // by their output, as the next
  std::vector<Node*> uniform_;       // that are not computed, because they repeat few numbers
  std::vector<ValueId> replaced_;
};

}  // namespace

void FoldScales(Graph& graph, const BuildLimits& limits) { ScaleFolder(graph, limits).Run(); }

void RemoveUnused(Graph& graph) {
  std::vector<bool> is_used(graph.values.size(), false);
  for (const Output& output : graph.outputs) is_used[output.value] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_read = std::any_of(node->outputs.begin(), node->outputs.end(),
                                     [&](ValueId id) { return id != kNoValue && is_used[id]; });
    if (!is_read) continue;
    for (const std::vector<ValueId>* ids : {&node->inputs, &node->outputs}) {
      for (const ValueId id : *ids) {
        if (id != kNoValue) is_used[id] = true;
      }
    }
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
  for (const Input& input : graph.inputs) is_used[input.value] = true;

  std::vector<ValueId> moved(graph.values.size(), kNoValue);
  Values values;
  for (size_t i = 0; i < moved.size(); ++i) {
    if (!is_used[i]) continue;
    moved[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(values);
  const auto move = [&](ValueId& id) {
    if (id != kNoValue) id = moved[id];
  };
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.inputs) move(id);
    for (ValueId& id : node.outputs) move(id);
  }
  for (Input& input : graph.inputs) move(input.value);
  for (Output& output : graph.outputs) move(output.value);
}

}  // namespace opmill::onnx
