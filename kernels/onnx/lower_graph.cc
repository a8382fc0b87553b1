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
  GraphLowerer(const Graph& graph, const ConstantSource& data_of, const std::stop_token& abandoned)
      : graph_(graph), data_of_(data_of), abandoned_(abandoned), views_(graph.values.size()) {}

  absl::StatusOr<LoweredGraph> Run() {
    for (const Input& input : graph_.inputs) AddInput(input.value);
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (graph_.values[id].constant == nullptr) continue;
      constants_[static_cast<uint32_t>(result_.program.values.size())] = id;
      AddValue(id, ValueKind::kConstant);
    }
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      RETURN_IF_ERROR(CheckAbandoned(abandoned_));
      Add(graph_.nodes[n]);
      result_.nodes.resize(result_.program.nodes.size(), n);
    }
    for (const Output& output : graph_.outputs) AddOutput(output);
    result_.nodes.resize(result_.program.nodes.size(), LoweredGraph::kCopy);
    if (!missing_.empty()) refusals_.insert(refusals_.begin(), MissingKernels());
    if (!refusals_.empty()) return absl::UnimplementedError(JoinRefusals(refusals_));
    RETURN_IF_ERROR(Renumber());
    ASSIGN_OR_RETURN(result_.program, Validate(std::move(result_.program)));
    return std::move(result_);
  }

 private:
  struct Missing {
    size_t nodes = 0;
    std::string first;
  };

  void AddValue(ValueId id, ValueKind kind) {
    std::vector<ProgramValue>& values = result_.program.values;
    views_[id] = {static_cast<uint32_t>(values.size()), 0, DescOf(graph_.values[id].type)};
    values.push_back({kind, views_[id].tensor});
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
      view = Lowering(reader, result_.program).EmitNamed("identity", {view});
      if (!reader.ok()) return refusals_.emplace_back(reader.status().message()), void();
    }
    result_.program.values[view.value].kind = ValueKind::kOutput;
    outputs_.push_back(view.value);
    result_.outputs.push_back(type);
  }

  // Outputs come last, in their order. Constants that only the form of the graph depended on, which
  // no node reads, are left out.
  absl::Status Renumber() {
    Program& program = result_.program;
    std::vector<bool> is_kept(program.values.size(), false);
    for (size_t i = 0; i < program.values.size(); ++i) {
      is_kept[i] = program.values[i].kind == ValueKind::kInput;
    }
    for (const ProgramNode& node : program.nodes) {
      for (const ProgramView& view : node.inputs) is_kept[view.value] = true;
      for (const uint32_t output : node.outputs) is_kept[output] = true;
    }
    for (const uint32_t output : outputs_) is_kept[output] = false;
    std::vector<uint32_t> moved(program.values.size());
    std::vector<ProgramValue> values;
    const auto move = [&](uint32_t from) {
      moved[from] = static_cast<uint32_t>(values.size());
      values.push_back(std::move(program.values[from]));
    };
    for (uint32_t i = 0; i < is_kept.size(); ++i) {
      if (!is_kept[i]) continue;
      move(i);
      if (const auto constant = constants_.find(i); constant != constants_.end()) {
        RETURN_IF_ERROR(CheckAbandoned(abandoned_));
        ASSIGN_OR_RETURN(values.back().constant,
                         data_of_(graph_.values[constant->second].constant));
      }
    }
    for (const uint32_t output : outputs_) move(output);
    program.values = std::move(values);
    for (ProgramNode& node : program.nodes) {
      for (ProgramView& view : node.inputs) view.value = moved[view.value];
      for (uint32_t& output : node.outputs) output = moved[output];
    }
    return absl::OkStatus();
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
  const ConstantSource& data_of_;
  const std::stop_token& abandoned_;
  LoweredGraph result_;
  std::vector<View> views_;                // of the graph's values
  std::map<uint32_t, ValueId> constants_;  // of the program's values
  std::vector<uint32_t> outputs_;          // of the program's values
  std::map<std::string, Missing> missing_;
  std::vector<std::string> refusals_;
};

}  // namespace

std::shared_ptr<const ConstantData> CopyOf(const Bytes& bytes) {
  return ConstantData::Of({reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()});
}

absl::StatusOr<LoweredGraph> LowerGraph(const Graph& graph, const ConstantSource& data_of,
                                        const std::stop_token& abandoned) {
  return GraphLowerer(graph, data_of, abandoned).Run();
}

}  // namespace opmill::onnx
