#include "kernels/onnx/gather_first.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

namespace opmill::onnx {
namespace {

class RowGatherer {
 public:
  RowGatherer(Graph& graph, const BuildLimits& limits)
      : graph_(graph), build_(graph.values, nodes_, limits) {}

  void Run() {
    for (Node& node : graph_.nodes) {
      for (ValueId& id : node.inputs) id = Replaced(id);
      if (Replace(node)) continue;
      if (node.outputs.size() == 1) writers_[node.outputs[0]] = node;
      nodes_.push_back(std::move(node));
    }
    for (Output& output : graph_.outputs) output.value = Replaced(output.value);
    graph_.nodes = std::move(nodes_);
  }

 private:
  ValueId Replaced(ValueId id) const {
    const auto found = replaced_.find(id);
    return found == replaced_.end() ? id : found->second;
  }

  const Sizes& SizesOf(ValueId id) const { return graph_.values[id].type.sizes; }

  // Whether nodes compute the value from constants, each of which has one row for each of the
  // table, or the same for all.
  bool IsTable(ValueId id, const Sizes& table) const {
    const Sizes& sizes = SizesOf(id);
    if (graph_.values[id].constant != nullptr) {
      return sizes.size() < table.size() || sizes[0] == 1 || sizes[0] == table[0];
    }
    const auto writer = writers_.find(id);
    if (writer == writers_.end() || sizes.size() != table.size()) return false;
    const Node& node = writer->second;
    return (node.op == "Cast" || node.op == "Mul") &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return IsTable(input, table); });
  }

  // The rows of the value that `indices` select.
  ValueId RowsOf(ValueId id, const Sizes& table, ValueId indices) {
    const Sizes& sizes = SizesOf(id);
    if (graph_.values[id].constant != nullptr) {
      const bool has_rows = sizes.size() == table.size() && sizes[0] == table[0];
      return has_rows ? build_.Add("Gather", {id, indices}, {{"axis", int64_t{0}}}) : id;
    }
    const Node node = writers_[id];
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(RowsOf(input, table, indices));
    const size_t first = nodes_.size();
    const ValueId rows = build_.Add(node.op, std::move(inputs), node.attributes);
    SetSources(first, node.sources);
    return rows;
  }

  // Of the nodes from `first` on that have none yet.
  void SetSources(size_t first, const std::vector<uint32_t>& sources) {
    for (size_t i = first; i < nodes_.size(); ++i) {
      if (nodes_[i].sources.empty()) nodes_[i].sources = sources;
    }
  }

  bool Replace(const Node& node) {
    if (node.op != "Gather" || !writers_.contains(node.inputs[0])) return false;
    const Sizes table = SizesOf(node.inputs[0]);
    const auto axis = node.attributes.find("axis");
    const int64_t* const given =
        axis == node.attributes.end() ? nullptr : std::get_if<int64_t>(&axis->second);
    const bool is_along_rows = given == nullptr || *given == 0;
    if (!is_along_rows || table[0] == 1 || SizesOf(node.inputs[1]).empty() ||
        !IsTable(node.inputs[0], table)) {
      return false;
    }
    const size_t first = nodes_.size();
    const ValueId rows = RowsOf(node.inputs[0], table, node.inputs[1]);
    SetSources(first, node.sources);
    if (rows == kNoValue) return false;
    replaced_[node.outputs[0]] = rows;
    return true;
  }

  Graph& graph_;
  std::vector<Node> nodes_;
  Builder build_;
  std::map<ValueId, Node> writers_;  // of values
  std::map<ValueId, ValueId> replaced_;
};

}  // namespace

void GatherFirst(Graph& graph, const BuildLimits& limits) { RowGatherer(graph, limits).Run(); }

}  // namespace opmill::onnx
