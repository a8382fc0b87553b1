// ONNX files: reading them, and all passes up to operators, with small sizes.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/onnx/elements.h"
#include "kernels/onnx/explain.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/onnx/read_model.h"
#include "kernels/onnx/specialize.h"
#include "kernels/operators/elementwise/fuse_chains.h"
#include "onnx/model.pb.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/proto_mutator.h"

namespace opmill::onnx {
namespace {

constexpr ReadLimits kReadLimits = {.memory_bytes = 16 << 20, .nodes = 256};
constexpr double kMaxSeconds = 10;  // includes sanitizers, and a busy machine

BuildLimits LimitsOfBuild() {
  return {.nodes = 2048, .small_bytes = 4 << 10, .folded_bytes = 1 << 20};
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void CheckRefusal(const absl::Status& refusal) {
  FUZZ_CHECK(absl::IsInvalidArgument(refusal) || absl::IsUnimplemented(refusal) ||
                 absl::IsResourceExhausted(refusal),
             refusal.ToString());
  FUZZ_CHECK(IsSentence(refusal), refusal.ToString());
}

// Free dimensions are 2, and values that are needed 1.
InputBindings Bind(const Graph& graph) {
  InputBindings bindings;
  for (const Input& input : graph.inputs) {
    Sizes& sizes = bindings.sizes[graph.values[input.value].name];
    if (!input.dimensions.has_value()) continue;
    for (const Dimension& dimension : *input.dimensions) {
      sizes.push_back(dimension.size.value_or(2));
    }
  }
  for (const std::string& name : FormInputs(graph)) {
    for (const Input& input : graph.inputs) {
      if (graph.values[input.value].name != name || ElementBytes(input.element) == 0) continue;
      bindings.values[name] = ScalarOf(input.element, 1);
      if (bindings.sizes[name] == Sizes{1}) bindings.values[name].type.sizes = {1};
    }
  }
  return bindings;
}

void CheckGraph(const Graph& graph) {
  std::vector<bool> is_known(graph.values.size(), false);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    FUZZ_CHECK(ElementCount(value.type.sizes).has_value(), value.name);
    if (value.constant == nullptr) continue;
    is_known[i] = true;
    FUZZ_CHECK(value.constant->size() == PackedBytes(value.type), value.name);
  }
  for (const Input& input : graph.inputs) is_known[input.value] = true;
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) FUZZ_CHECK(id == kNoValue || is_known[id], NameOf(node));
    for (const ValueId id : node.outputs) {
      FUZZ_CHECK(id != kNoValue && !is_known[id], NameOf(node));
      is_known[id] = true;
    }
  }
  for (const Output& output : graph.outputs) FUZZ_CHECK(is_known[output.value], output.name);
}

void CheckProgram(const Graph& graph, const LoweredGraph& lowered) {
  const Program& program = lowered.program;
  const absl::StatusOr<Program> again = Validate(program);
  FUZZ_CHECK(again.ok() && *again == program, again.status().ToString());
  size_t inputs = 0;
  size_t outputs = 0;
  for (const ProgramValue& value : program.values) {
    if (value.kind != ValueKind::kInput && value.kind != ValueKind::kOutput) continue;
    const TensorType& type = value.kind == ValueKind::kInput
                                 ? graph.values[graph.inputs[inputs++].value].type
                                 : lowered.outputs[outputs++];
    FUZZ_CHECK(IsPacked(value.tensor) && SpannedBytes(value.tensor) == PackedBytes(type),
               ToString(type));
  }
  FUZZ_CHECK(inputs == graph.inputs.size() && outputs == graph.outputs.size(), inputs);
}

// Every operator of the program has a node, unless it copies an output.
void CheckExplanation(const Graph& graph, const InputBindings& bindings,
                      const LoweredGraph& lowered) {
  const absl::StatusOr<Explanation> explained = Explain(graph, bindings, LimitsOfBuild());
  FUZZ_CHECK(explained.ok(), explained.status().ToString());
  std::vector<bool> has_node(FuseChains(lowered.program).nodes.size(), false);
  for (const ExplainedNode& node : explained->nodes) {
    FUZZ_CHECK(node.operators.empty() == (node.fate != NodeFate::kComputed), node.name);
    for (const uint32_t op : node.operators) has_node.at(op) = true;
  }
  const auto without = std::count(has_node.begin(), has_node.end(), false);
  FUZZ_CHECK(static_cast<size_t>(without) <= lowered.outputs.size(), without);
}

// A file that is cut off, and one with another byte.
void ReadDamaged(std::string bytes) {
  if (bytes.empty()) return;
  uint32_t hash = 0;
  for (const char c : bytes) hash = hash * 31 + static_cast<unsigned char>(c);
  const size_t at = hash % bytes.size();
  if (const auto cut = ReadModel(bytes.substr(0, at), kReadLimits); !cut.ok()) {
    CheckRefusal(cut.status());
  }
  bytes[at] = static_cast<char>(hash >> 24);
  if (const auto damaged = ReadModel(bytes, kReadLimits); !damaged.ok()) {
    CheckRefusal(damaged.status());
  }
}

void Run(const file::ModelProto& model) {
  const double begun = ProcessorSeconds();
  const std::string bytes = model.SerializePartialAsString();
  ReadDamaged(bytes);
  const absl::StatusOr<Graph> graph = ReadModel(bytes, kReadLimits);
  if (!graph.ok()) return CheckRefusal(graph.status());
  const InputBindings bindings = Bind(*graph);
  const absl::StatusOr<Graph> specialized = Specialize(*graph, bindings, LimitsOfBuild());
  FUZZ_CHECK(ProcessorSeconds() - begun < kMaxSeconds, "too long");
  if (!specialized.ok()) return CheckRefusal(specialized.status());
  CheckGraph(*specialized);
  const absl::StatusOr<LoweredGraph> lowered = LowerGraph(*specialized);
  if (!lowered.ok()) return CheckRefusal(lowered.status());
  CheckProgram(*specialized, *lowered);
  CheckExplanation(*graph, bindings, *lowered);
}

}  // namespace
}  // namespace opmill::onnx

OPMILL_FUZZ_MESSAGE(opmill::onnx::file::ModelProto, opmill::onnx::Run)
