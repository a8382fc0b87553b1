#include "kernels/onnx/lower_graph.h"

#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/onnx/operator_table.h"
#include "kernels/onnx/specialize.h"

namespace opmill::onnx {
namespace {

class GraphLowerer {
 public:
  explicit GraphLowerer(const Graph& graph) : graph_(graph), views_(graph.values.size()) {}

  absl::StatusOr<ModelProgram> Run() {
    for (const Input& input : graph_.inputs) AddInput(input.value);
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (graph_.values[id].constant != nullptr) AddConstant(id);
    }
    for (const Node& node : graph_.nodes) Add(node);
    for (const Output& output : graph_.outputs) AddOutput(output);
    if (!missing_.empty()) refusals_.insert(refusals_.begin(), MissingKernels());
    if (!refusals_.empty()) return absl::UnimplementedError(JoinRefusals(refusals_));
    RemoveUnread();
    for (auto& [value, output] : outputs_) result_.outputs.push_back(std::move(output));
    ASSIGN_OR_RETURN(result_.program, Validate(std::move(result_.program)));
    return std::move(result_);
  }

 private:
  struct Missing {
    size_t nodes = 0;
    std::string first;
  };

  ProgramValue& AddValue(ValueId id, ValueKind kind) {
    std::vector<ProgramValue>& values = result_.program.values;
    views_[id] = {static_cast<uint32_t>(values.size()), 0, DescOf(graph_.values[id].type)};
    return values.emplace_back(ProgramValue{kind, views_[id].tensor});
  }

  // Whether a device holds such a tensor.
  bool CheckType(absl::string_view what, absl::string_view name, const TensorType& type) {
    if (PackedBytes(type) > 0 && opmill::ElementBytes(DataTypeOf(type.element)) > 0) return true;
    refusals_.push_back(absl::StrCat(what, " '", Excerpt(name), "' is ", ToString(type),
                                     ", which devices do not hold."));
    return false;
  }

  void AddInput(ValueId id) {
    const Value& value = graph_.values[id];
    CheckType("Input", value.name, value.type);
    AddValue(id, ValueKind::kInput);
    result_.inputs.push_back({value.name, value.type});
  }

  void AddConstant(ValueId id) {
    const std::string& bytes = *graph_.values[id].constant;
    AddValue(id, ValueKind::kConstant).constant =
        ConstantData::Of({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  }

  void Add(const Node& node) {
    const OperatorRow& row = *FindOperator(node.op);
    NodeReader reader(node, graph_.values);
    Lowering lowering(reader, result_.program);
    std::vector<View> inputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? View() : views_[id]);
      if (inputs.back().tensor.data_type == DataType::kFloat64) {
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
      if (reader.ok()) {
        views_[node.outputs[i]] = outputs[i];
      } else {
        AddValue(node.outputs[i], ValueKind::kIntermediate);  // so that later nodes are checked too
      }
    }
  }

  // What is not a whole value that a node computes, or is an output already, is copied.
  void AddOutput(const Output& output) {
    const TensorType& type = graph_.values[output.value].type;
    if (!CheckType("Output", output.name, type)) return;
    View view = views_[output.value];
    const ProgramValue& whole = result_.program.values[view.value];
    if (whole.kind != ValueKind::kIntermediate || view.offset != 0 || !IsPacked(view.tensor) ||
        ElementCount(view.tensor) != ElementCount(whole.tensor)) {
      const Node copy{.name = output.name, .op = "Identity"};
      NodeReader reader(copy, graph_.values);
      view = Lowering(reader, result_.program).EmitElementWise("identity", {view}, type.sizes);
      if (!reader.ok()) return refusals_.emplace_back(reader.status().message()), void();
    }
    result_.program.values[view.value].kind = ValueKind::kOutput;
    outputs_[view.value] = {output.name, type};
  }

  // Constants that only the form of the graph depended on.
  void RemoveUnread() {
    Program& program = result_.program;
    std::vector<bool> is_kept(program.values.size(), false);
    for (const ProgramNode& node : program.nodes) {
      for (const ProgramView& view : node.inputs) is_kept[view.value] = true;
      for (const uint32_t output : node.outputs) is_kept[output] = true;
    }
    std::vector<uint32_t> moved(program.values.size());
    std::vector<ProgramValue> values;
    std::map<uint32_t, ModelTensor> outputs;
    for (uint32_t i = 0; i < moved.size(); ++i) {
      if (!is_kept[i] && program.values[i].kind != ValueKind::kInput) continue;
      moved[i] = static_cast<uint32_t>(values.size());
      if (const auto output = outputs_.find(i); output != outputs_.end()) {
        outputs[moved[i]] = std::move(output->second);
      }
      values.push_back(std::move(program.values[i]));
    }
    program.values = std::move(values);
    outputs_ = std::move(outputs);
    for (ProgramNode& node : program.nodes) {
      for (ProgramView& view : node.inputs) view.value = moved[view.value];
      for (uint32_t& output : node.outputs) output = moved[output];
    }
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
  ModelProgram result_;
  std::vector<View> views_;                  // of the graph's values
  std::map<uint32_t, ModelTensor> outputs_;  // by value
  std::map<std::string, Missing> missing_;
  std::vector<std::string> refusals_;
};

}  // namespace

absl::StatusOr<ModelProgram> LowerGraph(const Graph& graph) { return GraphLowerer(graph).Run(); }

}  // namespace opmill::onnx
