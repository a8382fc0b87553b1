#include "kernels/onnx/lower_graph.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/excerpt.h"
#include "kernels/onnx/operator_table.h"
#include "kernels/onnx/specialize.h"

namespace opmill::onnx {
namespace {

class GraphLowerer {
 public:
  explicit GraphLowerer(const Graph& graph) : graph_(graph), views_(graph.values.size()) {}

  absl::StatusOr<LoweredGraph> Run() {
    for (const Input& input : graph_.inputs) AddValue(input.value);
    result_.input_count = graph_.inputs.size();
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (graph_.values[id].constant == nullptr) continue;
      AddValue(id);
      result_.constants.push_back(graph_.values[id].constant);
    }
    for (const Node& node : graph_.nodes) Add(node);
    for (const Output& output : graph_.outputs) AddOutput(output);
    if (missing_.empty() && refusals_.empty()) return std::move(result_);
    if (!missing_.empty()) refusals_.insert(refusals_.begin(), MissingKernels());
    return absl::UnimplementedError(JoinRefusals(refusals_));
  }

 private:
  struct Missing {
    size_t nodes = 0;
    std::string first;
  };

  void AddValue(ValueId id) {
    views_[id] = {static_cast<uint32_t>(result_.lowered.values.size()), 0,
                  DescOf(graph_.values[id].type)};
    result_.lowered.values.push_back(views_[id].tensor);
  }

  void Add(const Node& node) {
    const OperatorRow& row = *FindOperator(node.op);
    NodeReader reader(node, graph_.values);
    Lowering lowering(reader, result_.lowered);
    std::vector<View> inputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? View() : views_[id]);
      if (id != kNoValue && DataTypeOf(graph_.values[id].type.element) == DataType::kFloat64) {
        reader.Unsupported("devices do not compute with DOUBLE.");
      }
    }
    std::vector<View> outputs;
    if (row.lower == nullptr) {
      lowering.HasNoKernel();
    } else if (reader.ok()) {
      outputs = row.lower(lowering, inputs);
    }
    if (lowering.has_no_kernel()) {
      Missing& missing = missing_[node.op];
      if (missing.nodes++ == 0) missing.first = node.name;
    } else if (!reader.ok()) {
      refusals_.emplace_back(reader.status().message());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue) continue;
      if (lowering.has_no_kernel() || !reader.ok()) {
        AddValue(id);  // so that later nodes are checked too
      } else {
        views_[id] = outputs[i];
      }
    }
  }

  // A value that is an input, a constant, a part of another value, or an output already is copied.
  void AddOutput(const Output& output) {
    const TensorType& type = graph_.values[output.value].type;
    View view = views_[output.value];
    if (PackedBytes(type) == 0 || opmill::ElementBytes(DataTypeOf(type.element)) == 0) {
      refusals_.push_back(absl::StrCat("Output '", Excerpt(output.name), "' is ", ToString(type),
                                       ", which devices do not hold."));
      return;
    }
    const bool is_computed = view.value >= result_.input_count + result_.constants.size();
    const TensorDesc& whole = result_.lowered.values[view.value];
    if (!is_computed || view.offset != 0 || !IsPacked(view.tensor) ||
        ElementCount(view.tensor) != ElementCount(whole) || !outputs_.insert(view.value).second) {
      Node copy{.name = output.name, .op = "Identity"};
      NodeReader reader(copy, graph_.values);
      view = Lowering(reader, result_.lowered).EmitElementWise("identity", {view}, type.sizes);
      if (!reader.ok()) refusals_.emplace_back(reader.status().message());
      outputs_.insert(view.value);
    }
    result_.outputs.push_back({output.name, type, std::move(view)});
  }

  std::string MissingKernels() const {
    return absl::StrCat(
        "Devices have no kernel for ",
        absl::StrJoin(missing_, ", ",
                      [](std::string* text, const auto& entry) {
                        absl::StrAppend(text, entry.first, " (", entry.second.nodes,
                                        entry.second.nodes == 1 ? " node, '" : " nodes, first '",
                                        Excerpt(entry.second.first), "')");
                      }),
        ".");
  }

  const Graph& graph_;
  LoweredGraph result_;
  std::vector<View> views_;  // of the graph's values
  std::set<uint32_t> outputs_;
  std::map<std::string, Missing> missing_;
  std::vector<std::string> refusals_;
};

}  // namespace

absl::StatusOr<LoweredGraph> LowerGraph(const Graph& graph) { return GraphLowerer(graph).Run(); }

}  // namespace opmill::onnx
