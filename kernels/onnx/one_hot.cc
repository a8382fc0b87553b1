#include "kernels/onnx/one_hot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/onnx/elements.h"

namespace opmill::onnx {
namespace {

// Of a table whose rows are functions of another one's: computing them takes less than a second.
constexpr uint64_t kMostFunctionElements = uint64_t{1} << 20;

class OneHotGatherer {
 public:
  OneHotGatherer(Graph& graph, const BuildLimits& limits)
      : graph_(graph), build_(graph.values, nodes_, limits) {}

  void Run() {
    for (Node& node : graph_.nodes) {
      if (std::optional<Rows> rows = RowsOf(node); rows.has_value()) {
        rows_[node.outputs[0]] = *std::move(rows);
        continue;
      }
      for (ValueId& id : node.inputs) id = Gathered(id);
      if (node.outputs.size() == 1) writers_[node.outputs[0]] = node;
      nodes_.push_back(std::move(node));
    }
    for (Output& output : graph_.outputs) output.value = Gathered(output.value);
    graph_.nodes = std::move(nodes_);
  }

 private:
  // A value whose rows are those of a constant table.
  struct Rows {
    ValueId table = kNoValue;
    ValueId indices = kNoValue;
    std::vector<uint32_t> sources;
    ValueId gathered = kNoValue;  // once a node reads it
  };

  const TensorType& TypeOf(ValueId id) const { return graph_.values[id].type; }
  const std::string* ConstantOf(ValueId id) const { return graph_.values[id].constant.get(); }

  const Node* WriterOf(ValueId id, absl::string_view op) const {
    const auto found = writers_.find(id);
    return found == writers_.end() || found->second.op != op ? nullptr : &found->second;
  }

  std::optional<Rows> RowsOf(const Node& node) {
    std::optional<Rows> rows = node.op == "MatMul" ? RowsOfProduct(node) : RowsOfFunction(node);
    if (rows.has_value()) {
      rows->sources.insert(rows->sources.end(), node.sources.begin(), node.sources.end());
    }
    return rows;
  }

  void SetSources(size_t first, const std::vector<uint32_t>& sources) {
    for (size_t i = first; i < nodes_.size(); ++i) nodes_[i].sources = sources;
  }

  std::optional<Rows> RowsOfProduct(const Node& node) {
    const ValueId table = node.inputs[1];
    const Node* const cast = WriterOf(node.inputs[0], "Cast");
    const Node* const equal = cast == nullptr ? nullptr : WriterOf(cast->inputs[0], "Equal");
    if (equal == nullptr || !IsFiniteTable(table)) return std::nullopt;
    const Sizes sizes = TypeOf(table).sizes;
    for (const size_t i : {0, 1}) {
      const ValueId x = equal->inputs[i];
      Sizes index_sizes = TypeOf(x).sizes;
      if (index_sizes.size() < 2 || index_sizes.back() != 1 ||
          !CountsTo(sizes[0], equal->inputs[1 - i], TypeOf(x))) {
        continue;
      }
      index_sizes.pop_back();
      const size_t first = nodes_.size();
      const ValueId indices = build_.Reshape(IndicesOf(x, sizes[0]), index_sizes);
      SetSources(first, equal->sources);
      const ValueId zeros = build_.Constant(TensorOf(
          ElementType::kFloat, {1, sizes[1]}, std::vector<float>(static_cast<size_t>(sizes[1]))));
      const ValueId padded = build_.Add("Concat", {table, zeros}, {{"axis", int64_t{0}}});
      if (indices != kNoValue && IsConstant(padded)) return Rows{padded, indices, cast->sources};
    }
    return std::nullopt;
  }

  // 0 times an infinity would not be 0.
  bool IsFiniteTable(ValueId id) const {
    const TensorType& type = TypeOf(id);
    if (!IsConstant(id) || type.element != ElementType::kFloat || type.sizes.size() != 2) {
      return false;
    }
    const std::string& bytes = *ConstantOf(id);
    for (size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      if (!std::isfinite(LoadAs<float>(bytes.data() + i))) return false;
    }
    return true;
  }

  bool IsConstant(ValueId id) const { return id != kNoValue && ConstantOf(id) != nullptr; }

  // Whether it is 0, 1, 2, ..., along the last dimension of the indices.
  bool CountsTo(int64_t count, ValueId id, const TensorType& indices) const {
    const TensorType& type = TypeOf(id);
    const bool is_row = IsConstant(id) && !type.sizes.empty() && type.sizes.back() == count &&
                        ElementCount(type.sizes) == static_cast<uint64_t>(count) &&
                        type.sizes.size() <= indices.sizes.size();
    if (!is_row || type.element != indices.element ||
        (type.element != ElementType::kInt32 && type.element != ElementType::kInt64)) {
      return false;
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (LoadNumber<int64_t>(type.element, ConstantOf(id)->data(), at) != i) return false;
    }
    return true;
  }

  // `count`, the row of zeros, for what is no row of the table.
  ValueId IndicesOf(ValueId x, int64_t count) {
    const ElementType type = TypeOf(x).element;
    const ValueId none = build_.Constant(ScalarOf(type, static_cast<double>(count)));
    const ValueId is_negative = build_.Add("Less", {x, build_.Constant(ScalarOf(type, 0))});
    return build_.Add("Min", {build_.Add("Where", {is_negative, none, x}), none});
  }

  // Of rows of one table and of constants that are the same for all rows.
  std::optional<Rows> RowsOfFunction(const Node& node) {
    constexpr absl::string_view kFunctions[] = {"Add",  "Div", "Erf",     "Mul",
                                                "Relu", "Sub", "Sigmoid", "Tanh"};
    if (std::find(std::begin(kFunctions), std::end(kFunctions), node.op) == std::end(kFunctions)) {
      return std::nullopt;
    }
    std::optional<Rows> rows;
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      const auto found = rows_.find(id);
      if (found != rows_.end()) {
        const Rows& of = found->second;
        if (rows.has_value() && rows->indices != of.indices) return std::nullopt;
        if (!rows.has_value()) rows = Rows{of.table, of.indices, of.sources};
        if (TypeOf(id) != TypeOf(node.outputs[0])) return std::nullopt;
        inputs.push_back(of.table);
      } else if (IsConstant(id) && !TypeOf(id).sizes.empty()) {
        inputs.push_back(build_.Reshape(id, {TypeOf(id).sizes.back()}));
      } else {
        inputs.push_back(id);
      }
    }
    if (!rows.has_value()) return std::nullopt;
    const TensorType& table = TypeOf(rows->table);
    const bool is_small = ElementCount(table.sizes) <= kMostFunctionElements;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_small || !IsConstant(inputs[i]) || !HasOneRow(node.inputs[i])) return std::nullopt;
    }
    rows->table = build_.Add(node.op, std::move(inputs), node.attributes);
    if (!IsConstant(rows->table) || TypeOf(rows->table) != table) return std::nullopt;
    return rows;
  }

  // Whether it is the same for all rows; those of a table may differ.
  bool HasOneRow(ValueId id) const {
    const Sizes& sizes = TypeOf(id).sizes;
    return rows_.contains(id) || sizes.empty() ||
           ElementCount(sizes) == static_cast<uint64_t>(sizes.back());
  }

  ValueId Gathered(ValueId id) {
    const auto found = rows_.find(id);
    if (found == rows_.end()) return id;
    Rows& rows = found->second;
    if (rows.gathered == kNoValue) {
      const size_t first = nodes_.size();
      rows.gathered = build_.Add("Gather", {rows.table, rows.indices}, {{"axis", int64_t{0}}});
      SetSources(first, rows.sources);
    }
    return rows.gathered;
  }

  Graph& graph_;
  std::vector<Node> nodes_;
  Builder build_;
  std::map<ValueId, Node> writers_;  // of values
  std::map<ValueId, Rows> rows_;     // of values
};

}  // namespace

void GatherOneHot(Graph& graph, const BuildLimits& limits) { OneHotGatherer(graph, limits).Run(); }

}  // namespace opmill::onnx
