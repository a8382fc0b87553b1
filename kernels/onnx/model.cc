#include "kernels/onnx/model.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/steady_time.h"
#include "kernels/base/utf8_path.h"
#include "kernels/onnx/elements.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/onnx/operator_table.h"
#include "kernels/operators/elementwise/fuse_chains.h"

namespace opmill::onnx {
namespace {

absl::StatusOr<ModelTensor> ReadTensor(const std::string& name, const DeclaredType& type) {
  if (!type.dimensions.has_value() || type.element == ElementType::kUndefined) {
    return absl::UnimplementedError(
        absl::StrCat("The file does not say the type and the number of dimensions of '",
                     Excerpt(name), "', an input or output."));
  }
  if (ElementBytes(type.element) == 0) {
    return absl::UnimplementedError(
        absl::StrCat("The type of '", Excerpt(name), "', an input or output, is ",
                     ToString(type.element), ", which is not supported."));
  }
  ModelTensor tensor = {.name = name, .element = type.element};
  for (const Dimension& dimension : *type.dimensions) {
    tensor.sizes.push_back(dimension.size.value_or(-1));
  }
  return tensor;
}

// An operator that is not known makes no program, whatever the sizes are.
absl::Status CheckOperators(const std::vector<Node>& nodes) {
  std::vector<std::string> refusals;
  for (const Node& node : nodes) {
    if (node.op == "If" || FindOperator(node.op) != nullptr) continue;
    refusals.push_back(absl::StrCat(NameOf(node), ": the operator is not supported."));
  }
  if (refusals.empty()) return absl::OkStatus();
  return absl::UnimplementedError(JoinRefusals(refusals));
}

Tensor OnesOf(ElementType type, const Sizes& sizes) {
  const auto count = static_cast<size_t>(ElementCount(sizes).value_or(0));
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    return TensorOf(type, sizes, std::vector<T>(count, T{1}));
  });
}

struct ContentHash {
  size_t operator()(const std::shared_ptr<const ConstantData>& constant) const {
    return absl::HashOf(*constant);
  }
};
struct EqualContent {
  bool operator()(const std::shared_ptr<const ConstantData>& a,
                  const std::shared_ptr<const ConstantData>& b) const {
    return *a == *b;
  }
};
using Contents =
    absl::flat_hash_set<std::shared_ptr<const ConstantData>, ContentHash, EqualContent>;

}  // namespace

std::string KeyOf(const InputBindings& bindings) {
  std::string key;
  for (const auto& [name, sizes] : bindings.sizes) {
    absl::StrAppend(&key, name, "=", absl::StrJoin(sizes, ","), "\n");
  }
  for (const auto& [name, value] : bindings.values) {
    absl::StrAppend(&key, name, ":=", absl::StrJoin(value.type.sizes, ","), " ", *value.bytes,
                    "\n");
  }
  return key;
}

absl::Status Model::ReadTensors() {
  const std::vector<std::string> forms = FormInputs(graph_);
  for (const Input& input : graph_.inputs) {
    const std::string& name = graph_.values[input.value].name;
    ASSIGN_OR_RETURN(ModelTensor tensor, ReadTensor(name, input));
    tensor.is_form = std::find(forms.begin(), forms.end(), name) != forms.end();
    inputs_.push_back(std::move(tensor));
  }
  for (const Output& output : graph_.outputs) {
    ASSIGN_OR_RETURN(ModelTensor tensor, ReadTensor(output.name, output));
    outputs_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

// Nodes take about as much memory as the file has beside constants.
absl::Status Model::ReadConstants(uint64_t file_bytes) {
  const absl::MutexLock lock(&mutex_);
  for (const Value& value : graph_.values) {
    if (value.constant != nullptr) constants_.emplace(value.constant.get(), nullptr);
  }
  const uint64_t constant_bytes = CountBytes();
  node_bytes_ = file_bytes - std::min(file_bytes, constant_bytes);
  return share_.Grow(node_bytes_ + constant_bytes);
}

// What the whole budget does not have is refused before it is read.
ReadLimits Model::ReadLimitsOf(const ModelLimits& limits) {
  ReadLimits read = limits.read;
  if (limits.budget != nullptr)
    read.memory_bytes = std::min(read.memory_bytes, limits.budget->limit());
  return read;
}

absl::Status Model::NamingBudget(const ModelLimits& limits, const absl::Status& status) {
  const bool is_beyond_budget = absl::IsResourceExhausted(status) && limits.budget != nullptr &&
                                limits.budget->limit() < limits.read.memory_bytes;
  if (!is_beyond_budget) return status;
  return absl::ResourceExhaustedError(
      absl::StrCat(status.message(), " Of all models, ", limits.budget->Use(), "."));
}

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(const std::string& path,
                                                         const ModelLimits& limits,
                                                         const std::stop_token& abandoned) {
  absl::StatusOr<Graph> graph = ReadModelFile(path, ReadLimitsOf(limits), abandoned);
  if (!graph.ok()) return NamingBudget(limits, graph.status());
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(PathOf(path), error);
  return Make(*std::move(graph), limits, error ? 0 : bytes, abandoned);
}

absl::StatusOr<std::shared_ptr<const Model>> Model::Parse(absl::string_view bytes,
                                                          const ModelLimits& limits,
                                                          const std::stop_token& abandoned) {
  absl::StatusOr<Graph> graph = ReadModel(bytes, ReadLimitsOf(limits), abandoned);
  if (!graph.ok()) return NamingBudget(limits, graph.status());
  return Make(*std::move(graph), limits, bytes.size(), abandoned);
}

absl::StatusOr<std::shared_ptr<const Model>> Model::Make(Graph graph, const ModelLimits& limits,
                                                         uint64_t file_bytes,
                                                         const std::stop_token& abandoned) {
  std::shared_ptr<Model> model(new Model(std::move(graph), limits));
  RETURN_IF_ERROR(model->ReadTensors());
  RETURN_IF_ERROR(model->ReadConstants(file_bytes));
  RETURN_IF_ERROR(model->CheckKernels(abandoned));
  return model;
}

// Which sizes a model takes is not known where its file leaves them open, so some are tried: with a
// batch of one, then with the same size everywhere. A model is refused if none of them makes a
// program, and none is wrong for another reason than that devices do not compute it. Of the others
// at least the operators must be known.
absl::Status Model::CheckKernels(const std::stop_token& abandoned) const {
  absl::Status refusal;
  for (const bool has_batch : {true, false}) {
    for (const int64_t size : {32, 1, 8, 512, 2048}) {
      absl::Status status =
          ProgramFor(TriedBindings(has_batch ? 1 : size, size), abandoned).status();
      if (status.ok() || absl::IsCancelled(status)) return status;
      if (absl::IsInvalidArgument(status)) return CheckOperators(graph_.nodes);
      if (refusal.ok()) refusal = status;
    }
  }
  return refusal;
}

InputBindings Model::TriedBindings(int64_t first, int64_t size) const {
  InputBindings bindings;
  for (const ModelTensor& input : inputs_) {
    Sizes sizes = input.sizes;
    if (!sizes.empty() && sizes[0] == -1) sizes[0] = first;
    std::replace(sizes.begin(), sizes.end(), int64_t{-1}, size);
    if (input.is_form && ElementBytes(input.element) > 0) {
      bindings.values[input.name] = OnesOf(input.element, sizes);
    } else {
      bindings.sizes[input.name] = sizes;
    }
  }
  return bindings;
}

std::shared_ptr<const ModelProgram> Model::FindProgram(const InputBindings& bindings) const {
  const std::string key = KeyOf(bindings);
  const absl::MutexLock lock(&mutex_);
  return FindKept(key);
}

std::shared_ptr<const ModelProgram> Model::FindKept(const std::string& key) const {
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const auto& kept) { return kept.first == key; });
  if (found == programs_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found);
  return found->second;
}

absl::StatusOr<std::shared_ptr<const ModelProgram>> Model::ProgramFor(
    const InputBindings& bindings, const std::stop_token& abandoned) const {
  const absl::Time begun = SteadyNow();
  std::string key = KeyOf(bindings);
  {
    const absl::MutexLock lock(&mutex_);
    if (auto kept = FindKept(key); kept != nullptr) return kept;
  }
  ByteShare making(limits_.budget);
  absl::StatusOr<std::shared_ptr<ModelProgram>> program;
  try {
    absl::StatusOr<ModelProgram> made = MakeProgram(bindings, making, abandoned);
    if (made.ok()) made->duration = SteadyNow() - begun;
    program = made.ok() ? absl::StatusOr<std::shared_ptr<ModelProgram>>(
                              std::make_shared<ModelProgram>(*std::move(made)))
                        : made.status();
  } catch (const std::bad_alloc&) {
    program =
        absl::ResourceExhaustedError("The server has no memory for the program of the model.");
  }
  const absl::MutexLock lock(&mutex_);
  if (program.ok()) {
    // What was computed for other sizes too is kept once.
    Contents kept;
    for (const auto& [other_key, other] : programs_) {
      for (const ProgramValue& value : other->program.values) {
        if (value.constant != nullptr) kept.insert(value.constant);
      }
    }
    for (ProgramValue& value : (*program)->program.values) {
      if (value.constant != nullptr) value.constant = *kept.insert(value.constant).first;
    }
    programs_.emplace_front(std::move(key), *program);
    if (programs_.size() > limits_.programs) programs_.pop_back();
  }
  // Constants of the graph stay even if there is no program.
  share_.Add(making);
  share_.ShrinkTo(CountBytes());
  return program;
}

// Programs that were used before give way.
absl::Status Model::Reserve(uint64_t bytes, ByteShare& making) const {
  for (;;) {
    const absl::Status grown = making.Grow(bytes);
    if (grown.ok() || making.bytes() + bytes > limits_.budget->limit()) return grown;
    const absl::MutexLock lock(&mutex_);
    if (programs_.empty()) return grown;
    programs_.pop_back();
    share_.ShrinkTo(CountBytes());
  }
}

absl::StatusOr<std::shared_ptr<const ConstantData>> Model::DataOf(const Bytes& bytes,
                                                                  ByteShare& making) const {
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = constants_.find(bytes.get());
    if (found != constants_.end() && found->second != nullptr) return found->second;
  }
  RETURN_IF_ERROR(Reserve(bytes->size(), making));
  std::shared_ptr<const ConstantData> data = CopyOf(bytes);
  const absl::MutexLock lock(&mutex_);
  const auto found = constants_.find(bytes.get());
  if (found == constants_.end()) return data;
  if (found->second == nullptr) found->second = std::move(data);  // else by another program
  return found->second;
}

uint64_t Model::CountBytes() const {
  uint64_t bytes = node_bytes_;
  absl::flat_hash_set<const void*> counted;
  const auto count = [&](const auto& constant) {
    if (constant != nullptr && counted.insert(constant.get()).second) bytes += constant->size();
  };
  for (const Value& value : graph_.values) count(value.constant);
  for (const auto& [of_graph, data] : constants_) count(data);
  for (const auto& [key, kept] : programs_) {
    for (const ProgramValue& value : kept->program.values) count(value.constant);
  }
  return bytes;
}

BuildLimits Model::build_limits(const std::stop_token& abandoned) const {
  BuildLimits build = {.abandoned = abandoned};
  build.folded_bytes = std::min(build.folded_bytes, limits_.constant_bytes);
  return build;
}

absl::StatusOr<Explanation> Model::Explain(const InputBindings& bindings,
                                           const std::stop_token& abandoned) const {
  ByteShare making(limits_.budget);
  try {
    return onnx::Explain(graph_, bindings, build_limits(abandoned),
                         [&](const Bytes& bytes) { return DataOf(bytes, making); });
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("The server has no memory to explain the model.");
  }
}

absl::StatusOr<ModelProgram> Model::MakeProgram(const InputBindings& bindings, ByteShare& making,
                                                const std::stop_token& abandoned) const {
  ASSIGN_OR_RETURN(const Graph graph, Specialize(graph_, bindings, build_limits(abandoned)));
  ASSIGN_OR_RETURN(
      LoweredGraph lowered,
      LowerGraph(
          graph, [&](const Bytes& bytes) { return DataOf(bytes, making); }, abandoned));
  RETURN_IF_ERROR(CheckAbandoned(abandoned));
  uint64_t constant_bytes = 0;
  for (const ProgramValue& value : lowered.program.values) {
    if (value.constant != nullptr) constant_bytes += value.constant->size();
  }
  if (constant_bytes > limits_.constant_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The constants of the model have ", constant_bytes, " bytes, more than ",
                     limits_.constant_bytes, " (max_model_constant_bytes)."));
  }
  ModelProgram made = {.bindings = bindings,
                       .program = FuseChains(std::move(lowered.program)),
                       .outputs = std::move(lowered.outputs)};
  for (ProgramNode& node : made.program.nodes) node.desc.is_batched = limits_.is_batched;
  for (const Input& input : graph.inputs) {
    const std::string& name = graph.values[input.value].name;
    const auto at = std::find_if(inputs_.begin(), inputs_.end(),
                                 [&](const ModelTensor& tensor) { return tensor.name == name; });
    made.inputs.push_back(static_cast<size_t>(at - inputs_.begin()));
  }
  return made;
}

}  // namespace opmill::onnx
