#include "server/models/model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/operators/operator_list.h"
#include "server/models/data_types.h"

namespace opmill {
namespace {

// FLOAT32, or if the operator does not take it, the first type that it takes.
DataType TypeOf(const FeatureLevelRow& row, TypeVariable variable) {
  const DataTypeSet types = row.TypesOf(variable);
  return types.Contains(DataType::kFloat32) ? DataType::kFloat32 : types.types().front();
}

// Of an example: FLOAT32 tensors with two dimensions, or with as many as the operator needs.
std::shared_ptr<Model> MakeBuiltIn(const OperatorSchema& schema, uint32_t function) {
  auto model = std::make_shared<Model>();
  model->name = std::string(schema.name);
  model->schema = &schema;
  OperatorDesc example = {.schema = &schema};
  example.outputs.resize(schema.outputs.size());
  for (const AttributeSchema& attribute : schema.attributes) {
    example.attributes.push_back(ExampleOf(attribute));
  }
  if (schema.has_functions()) {
    const AttributeSchema& attribute = schema.attributes[schema.function_attribute];
    const std::string choice(attribute.choices[function]);
    absl::StrAppend(&model->name, "_", absl::AsciiStrToLower(choice));
    model->parameters.emplace(attribute.name, choice);
    example.attributes[schema.function_attribute] = function;
  }
  const FeatureLevelRow& row = NewestRow(example);
  const uint32_t rank = std::max(row.min_rank, 2u);
  const std::vector<int64_t> shape(rank, kAnySize);
  for (const TensorSchema& input : schema.inputs) {
    const DataType type = TypeOf(row, input.type);
    example.inputs.push_back({.data_type = type, .sizes = std::vector<uint32_t>(rank, 1)});
    model->inputs.push_back({std::string(input.name), type, shape});
  }
  std::vector<InferredOutput> outputs;
  if (!schema.infer(example, outputs).ok()) {  // cast has no type of its own
    outputs.assign(schema.outputs.size(), {.data_type = DataType::kFloat32});
  }
  for (size_t i = 0; i < schema.outputs.size(); ++i) {
    model->outputs.push_back({std::string(schema.outputs[i].name), outputs[i].data_type, shape});
  }
  return model;
}

}  // namespace

std::vector<std::shared_ptr<const Model>> BuiltInModels() {
  std::vector<std::shared_ptr<const Model>> models;
  for (const OperatorSchema* const schema : Operators()) {
    const size_t functions =
        schema->has_functions() ? schema->attributes[schema->function_attribute].choices.size() : 1;
    for (uint32_t i = 0; i < functions; ++i) models.push_back(MakeBuiltIn(*schema, i));
  }
  return models;
}

absl::string_view TypeNameOf(const ModelTensor& tensor) {
  return tensor.is_bool ? kBoolName : NameOf(tensor.data_type);
}

inference::DataType ConfigTypeOf(const ModelTensor& tensor) {
  return tensor.is_bool ? inference::TYPE_BOOL : ConfigTypeOf(tensor.data_type);
}

std::shared_ptr<Model> MakeGraphModel(const std::string& name, const std::string& version,
                                      std::shared_ptr<const onnx::Model> graph) {
  auto model = std::make_shared<Model>();
  model->name = name;
  model->version = version;
  model->is_built_in = false;
  const auto tensor_of = [](const onnx::ModelTensor& from) {
    return ModelTensor{from.name, onnx::DataTypeOf(from.element), from.sizes,
                       from.element == onnx::ElementType::kBool};
  };
  for (const onnx::ModelTensor& input : graph->inputs()) model->inputs.push_back(tensor_of(input));
  for (const onnx::ModelTensor& out : graph->outputs()) model->outputs.push_back(tensor_of(out));
  model->graph = std::move(graph);
  return model;
}

bool TakesSizes(const ModelTensor& tensor, const std::vector<uint32_t>& sizes) {
  return absl::c_equal(tensor.shape, sizes, [](int64_t takes, uint32_t size) {
    return takes == kAnySize || takes == int64_t{size};
  });
}

size_t IndexOf(const std::vector<ModelTensor>& tensors, absl::string_view name) {
  const auto found = absl::c_find_if(tensors, [&](const auto& t) { return t.name == name; });
  return static_cast<size_t>(found - tensors.begin());
}

std::string NamesOf(const std::vector<ModelTensor>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const ModelTensor& tensor) {
    absl::StrAppend(out, tensor.name);
  });
}

absl::Status CheckBatch(const Model& model, const TensorDesc& input,
                        const std::string& sizes_path) {
  if (model.max_batch_size == 0 || input.sizes.empty() || input.sizes[0] <= model.max_batch_size) {
    return absl::OkStatus();
  }
  const std::string field = absl::StrCat(sizes_path, "[0]");
  return InvalidField(
      field, absl::StrCat(field, " (", input.sizes[0], ") is more than ", model.max_batch_size,
                          ", the max_batch_size of ", model.name, "."));
}

absl::Status CheckInput(const Model& model, size_t index, const TensorDesc& input,
                        const std::string& path) {
  const ModelTensor& tensor = model.inputs[index];
  if (input.data_type != tensor.data_type) {
    return InvalidField(absl::StrCat(path, ".datatype"),
                        absl::StrCat("The input ", Excerpt(tensor.name), " of ", model.name, " is ",
                                     TypeNameOf(tensor), ", not ", NameOf(input.data_type), "."));
  }
  RETURN_IF_ERROR(CheckBatch(model, input, absl::StrCat(path, ".shape")));
  if (TakesSizes(tensor, input.sizes)) return absl::OkStatus();
  return InvalidField(absl::StrCat(path, ".shape"),
                      absl::StrCat("The input ", Excerpt(tensor.name), " of ", model.name,
                                   " has the shape [", absl::StrJoin(tensor.shape, ","), "], not [",
                                   absl::StrJoin(input.sizes, ","), "]."));
}

absl::StatusOr<OperatorDesc> DescribeRequest(const Model& model, std::vector<TensorDesc> inputs,
                                             const Parameters& parameters) {
  Parameters all = model.parameters;
  for (const auto& [name, text] : parameters) {
    const std::optional<std::string> parameter = ParameterOf(*model.schema, name);
    const std::string path = absl::StrCat("parameters.", Excerpt(name));
    if (!model.is_built_in || !parameter.has_value() || model.parameters.contains(*parameter)) {
      return InvalidField(
          path, absl::StrCat(path, " (\"", Excerpt(text), "\") is not a parameter of ", model.name,
                             model.is_built_in
                                 ? absl::StrCat("; its parameters are ",
                                                ParameterNames(*model.schema, model.parameters))
                                 : ", whose configuration sets all of them",
                             "."));
    }
    if (!all.emplace(*parameter, text).second) {
      return InvalidField(
          path, absl::StrCat(path, " (\"", Excerpt(text), "\") is given under another name, ",
                             "with the value \"", Excerpt(all[*parameter]), "\"."));
    }
  }
  return DescribeOperator(*model.schema, std::move(inputs), all);
}

std::optional<InputField> InputFieldOf(const OperatorSchema& schema, size_t count,
                                       const absl::Status& status) {
  const std::string field = FieldOf(status).value_or("");
  const size_t end = std::min(field.find_first_of(".["), field.size());
  for (size_t i = 0; i < count; ++i) {
    if (field.substr(0, end) == schema.inputs[i].name) return InputField{i, field.substr(end)};
  }
  return std::nullopt;
}

}  // namespace opmill
