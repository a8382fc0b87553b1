#include "kernels/onnx/model.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/onnx/elements.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/operators/elementwise/fuse_chains.h"

namespace opmill::onnx {
namespace {

ModelTensor DeclaredTensor(const std::string& name, ElementType element,
                           const std::optional<std::vector<Dimension>>& dimensions) {
  ModelTensor tensor = {.name = name, .element = element, .has_any_rank = !dimensions.has_value()};
  for (const Dimension& dimension : dimensions.value_or(std::vector<Dimension>())) {
    tensor.sizes.push_back(dimension.size.value_or(-1));
  }
  return tensor;
}

Tensor OnesOf(ElementType type, const Sizes& sizes) {
  const auto count = static_cast<size_t>(ElementCount(sizes).value_or(0));
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    return TensorOf(type, sizes, std::vector<T>(count, T{1}));
  });
}

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

// Numbers values anew: those of the program's outputs come last, in the order of the outputs.
std::vector<uint32_t> Renumber(const LoweredGraph& graph) {
  constexpr uint32_t kNone = ~uint32_t{0};
  std::vector<uint32_t> numbers(graph.lowered.values.size(), kNone);
  auto next = static_cast<uint32_t>(numbers.size() - graph.outputs.size());
  for (const LoweredOutput& output : graph.outputs) numbers[output.view.value] = next++;
  next = 0;
  for (uint32_t& number : numbers) {
    if (number == kNone) number = next++;
  }
  return numbers;
}

}  // namespace

Model::Model(Graph graph, const ModelLimits& limits) : graph_(std::move(graph)), limits_(limits) {
  const std::vector<std::string> forms = FormInputs(graph_);
  for (const Input& input : graph_.inputs) {
    const std::string& name = graph_.values[input.value].name;
    inputs_.push_back(DeclaredTensor(name, input.element, input.dimensions));
    inputs_.back().is_form = std::find(forms.begin(), forms.end(), name) != forms.end();
  }
  for (const Output& output : graph_.outputs) {
    outputs_.push_back(DeclaredTensor(output.name, output.element, output.dimensions));
  }
  for (const Value& value : graph_.values) {
    if (value.constant != nullptr) constants_.emplace(value.constant.get(), nullptr);
  }
}

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(const std::string& path,
                                                         const ModelLimits& limits) {
  ASSIGN_OR_RETURN(Graph graph, ReadModelFile(path, limits.read));
  return Make(std::move(graph), limits);
}

absl::StatusOr<std::shared_ptr<const Model>> Model::Make(Graph graph, const ModelLimits& limits) {
  const std::shared_ptr<const Model> model(new Model(std::move(graph), limits));
  RETURN_IF_ERROR(model->CheckKernels());
  return model;
}

// Which sizes a model takes is not known where it leaves them free. So it is tried with some, and
// what none of them suits is refused when a request comes.
absl::Status Model::CheckKernels() const {
  for (const int64_t size : {1, 32, 8}) {
    InputBindings bindings;
    for (const ModelTensor& input : inputs_) {
      Sizes sizes = input.has_any_rank ? Sizes{size} : input.sizes;
      std::replace(sizes.begin(), sizes.end(), int64_t{-1}, size);
      if (input.is_form && ElementBytes(input.element) > 0) {
        bindings.values[input.name] = OnesOf(input.element, sizes);
      } else {
        bindings.sizes[input.name] = sizes;
      }
    }
    const absl::Status status = ProgramFor(bindings).status();
    if (status.ok() || absl::IsUnimplemented(status)) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ModelProgram>> Model::ProgramFor(
    const InputBindings& bindings) const {
  std::string key = KeyOf(bindings);
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const auto& kept) { return kept.first == key; });
    if (found != programs_.end()) {
      programs_.splice(programs_.begin(), programs_, found);
      return found->second;
    }
  }
  ASSIGN_OR_RETURN(ModelProgram made, MakeProgram(bindings));
  auto program = std::make_shared<const ModelProgram>(std::move(made));
  const absl::MutexLock lock(&mutex_);
  programs_.emplace_front(std::move(key), program);
  if (programs_.size() > limits_.programs) programs_.pop_back();
  return program;
}

std::shared_ptr<const ConstantData> Model::DataOf(const Bytes& bytes) const {
  const auto copy = [&] {
    return ConstantData::Of(
        absl::MakeSpan(reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()));
  };
  const absl::MutexLock lock(&mutex_);
  const auto found = constants_.find(bytes.get());
  if (found == constants_.end()) return copy();
  if (found->second == nullptr) found->second = copy();
  return found->second;
}

absl::StatusOr<ModelProgram> Model::MakeProgram(const InputBindings& bindings) const {
  ASSIGN_OR_RETURN(const Graph graph, Specialize(graph_, bindings, limits_.build));
  ASSIGN_OR_RETURN(const LoweredGraph lowered, LowerGraph(graph));
  ModelProgram made;
  Program& program = made.program;
  const std::vector<uint32_t> numbers = Renumber(lowered);
  program.values.resize(numbers.size());
  const size_t given = lowered.input_count + lowered.constants.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    ProgramValue& value = program.values[numbers[i]];
    value.tensor = lowered.lowered.values[i];
    if (i < lowered.input_count) {
      value.kind = ValueKind::kInput;
    } else if (i < given) {
      value.kind = ValueKind::kConstant;
      value.constant = DataOf(lowered.constants[i - lowered.input_count]);
    }
  }
  for (const LoweredOutput& output : lowered.outputs) {
    program.values[numbers[output.view.value]].kind = ValueKind::kOutput;
    made.outputs.push_back(output.type);
  }
  for (const LoweredNode& node : lowered.lowered.nodes) {
    ProgramNode& to = program.nodes.emplace_back();
    to.desc = node.desc;
    for (const View& view : node.inputs) to.inputs.emplace_back(numbers[view.value], view.offset);
    for (const uint32_t value : node.outputs) to.outputs.push_back(numbers[value]);
  }
  ASSIGN_OR_RETURN(program, Validate(std::move(program)));
  program = FuseChains(std::move(program));
  for (const Input& input : graph.inputs) {
    const std::string& name = graph.values[input.value].name;
    const auto at = std::find_if(inputs_.begin(), inputs_.end(),
                                 [&](const ModelTensor& tensor) { return tensor.name == name; });
    made.inputs.push_back(static_cast<size_t>(at - inputs_.begin()));
  }
  return made;
}

}  // namespace opmill::onnx
