#include "kernels/onnx/explain.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "kernels/base/errors.h"
#include "kernels/operators/elementwise/fuse_chains.h"
#include "kernels/operators/program_steps.h"

namespace opmill::onnx {
namespace {

class Explainer {
 public:
  explicit Explainer(const Graph& graph) { AddNodes(graph.nodes); }

  // What Specialize has left: nodes whose results are used.
  void AddEnds(const NodeEnds& ends, const Graph& specialized) {
    for (const auto& [source, end] : ends) {
      ExplainedNode& node = NodeOf(source);
      if (end == NodeEnd::kConstant || end == NodeEnd::kBranch) node.fate = NodeFate::kConstant;
      if (end == NodeEnd::kInput) node.fate = NodeFate::kView;
    }
    for (const Node& node : specialized.nodes) {
      for (const uint32_t source : node.sources) NodeOf(source).fate = NodeFate::kView;
    }
  }

  // `parts`: for each operator of the program, those of `lowered` that it joins.
  void AddOperators(const Graph& specialized, const LoweredGraph& lowered,
                    const std::vector<std::vector<uint32_t>>& parts) {
    for (uint32_t op = 0; op < parts.size(); ++op) {
      for (const uint32_t part : parts[op]) {
        const uint32_t from = lowered.nodes[part];
        if (from == LoweredGraph::kCopy) continue;
        for (const uint32_t source : specialized.nodes[from].sources) {
          ExplainedNode& node = NodeOf(source);
          node.fate = NodeFate::kComputed;
          if (node.operators.empty() || node.operators.back() != op) node.operators.push_back(op);
        }
      }
    }
  }

  std::vector<ExplainedNode> Take() && { return std::move(nodes_); }

 private:
  void AddNodes(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      indexes_[node.sources[0]] = nodes_.size();
      nodes_.push_back({.name = node.name, .op = node.op});
      for (const auto& [name, attribute] : node.attributes) {
        const auto* const block = std::get_if<std::shared_ptr<const Block>>(&attribute);
        if (block != nullptr) AddNodes((*block)->nodes);
      }
    }
  }
  ExplainedNode& NodeOf(uint32_t source) { return nodes_[indexes_.at(source)]; }

  std::vector<ExplainedNode> nodes_;
  absl::flat_hash_map<uint32_t, size_t> indexes_;  // by number in the file
};

}  // namespace

absl::StatusOr<Explanation> Explain(const Graph& graph, const InputBindings& bindings,
                                    const BuildLimits& limits, const ConstantSource& data_of) {
  Explainer explainer(graph);
  NodeEnds ends;
  ASSIGN_OR_RETURN(const Graph specialized, Specialize(graph, bindings, limits, &ends));
  ASSIGN_OR_RETURN(const LoweredGraph lowered, LowerGraph(specialized, data_of, limits.abandoned));
  std::vector<std::vector<uint32_t>> parts;
  FuseChains(lowered.program, &parts);
  explainer.AddEnds(ends, specialized);
  explainer.AddOperators(specialized, lowered, parts);
  return Explanation{.nodes = std::move(explainer).Take(),
                     .unfused_operators = lowered.program.nodes.size(),
                     .unfused_bytes = BytesMoved(StepsOf(lowered.program))};
}

}  // namespace opmill::onnx
