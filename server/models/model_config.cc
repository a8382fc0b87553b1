#include "server/models/model_config.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "inference/model_config.pb.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "server/models/data_types.h"

namespace opmill {
namespace {

constexpr absl::string_view kOperator = "operator";

// Requests and responses distinguish tensors by their names.
absl::Status CheckNames(const std::vector<ModelTensor>& tensors, absl::string_view what) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t earlier = 0; earlier < i; ++earlier) {
      if (tensors[i].name != tensors[earlier].name) continue;
      const std::string field = absl::StrCat(what, "[", i, "].name");
      return InvalidField(field, absl::StrCat(field, " (\"", Excerpt(tensors[i].name),
                                              "\") is that of ", what, "[", earlier, "] too."));
    }
  }
  return absl::OkStatus();
}

// Sets the operator and its parameters.
absl::Status ReadParameters(const inference::ModelConfig& config, Model& model) {
  const auto named = config.parameters().find(std::string(kOperator));
  if (named == config.parameters().end()) {
    return InvalidField("parameters.operator", "parameters.operator is not given.");
  }
  const std::string& wanted = named->second.string_value();
  for (const std::shared_ptr<const Model>& built_in : BuiltInModels()) {
    if (wanted == built_in->name || wanted == built_in->schema->name) {
      model.schema = built_in->schema;
      if (wanted == built_in->name) model.parameters = built_in->parameters;
      break;
    }
  }
  if (model.schema == nullptr) {
    return InvalidField("parameters.operator",
                        absl::StrCat("parameters.operator (\"", Excerpt(wanted),
                                     "\") is none of the built-in models of this server."));
  }
  for (const auto& [key, value] : config.parameters()) {
    if (key == kOperator) continue;
    const std::optional<std::string> parameter = ParameterOf(*model.schema, key);
    const std::string path = absl::StrCat("parameters.", Excerpt(key));
    if (!parameter.has_value() ||
        !model.parameters.emplace(*parameter, value.string_value()).second) {
      return InvalidField(path, absl::StrCat(path, " (\"", Excerpt(value.string_value()),
                                             "\") is not a parameter of ", wanted,
                                             ", or given twice; its parameters are ",
                                             ParameterNames(*model.schema, {}), "."));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadInputs(const inference::ModelConfig& config, Model& model) {
  const auto& expected = model.schema->inputs;
  if (static_cast<size_t>(config.input_size()) != expected.size()) {
    return InvalidField("input", absl::StrCat("input has ", config.input_size(), " tensors; ",
                                              model.schema->name, " takes ", expected.size(), "."));
  }
  for (int i = 0; i < config.input_size(); ++i) {
    const inference::ModelInput& from = config.input(i);
    const std::string path = absl::StrCat("input[", i, "]");
    ModelTensor& to = model.inputs.emplace_back();
    to.name =
        from.name().empty() ? std::string(expected[static_cast<size_t>(i)].name) : from.name();
    ASSIGN_OR_RETURN(to.data_type,
                     DecodeDataType(from.data_type(), absl::StrCat(path, ".data_type")));
    to.shape.assign(from.dims().begin(), from.dims().end());
    for (size_t d = 0; d < to.shape.size(); ++d) {
      const int64_t size = to.shape[d];
      constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
      if (size == kAnySize || (size >= 1 && size <= kMost)) continue;
      const std::string field = absl::StrCat(path, ".dims[", d, "]");
      return InvalidField(field, absl::StrCat(field, " (", size, ") is neither -1, for any size, ",
                                              "nor at least 1 and at most ", kMost, "."));
    }
  }
  return CheckNames(model.inputs, "input");
}

using Sizes = std::array<uint32_t, kMaxRank>;

// The inputs, with these sizes for dimensions of any size.
std::vector<TensorDesc> Sample(const Model& model, const Sizes& sizes) {
  std::vector<TensorDesc> inputs;
  for (const ModelTensor& tensor : model.inputs) {
    TensorDesc& input = inputs.emplace_back();
    input.data_type = tensor.data_type;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      const bool is_any = tensor.shape[d] == kAnySize && d < kMaxRank;
      input.sizes.push_back(is_any ? sizes[d] : static_cast<uint32_t>(tensor.shape[d]));
    }
  }
  return inputs;
}

// Infers the outputs from samples of the inputs: a dimension of an output that changes with a
// dimension of any size has any size too.
absl::Status InferOutputs(Model& model) {
  const auto describe = [&](const Sizes& sizes) {
    return DescribeOperator(*model.schema, Sample(model, sizes), model.parameters);
  };
  Sizes sizes;
  sizes.fill(1);
  absl::StatusOr<OperatorDesc> base = describe(sizes);
  // Some attributes need larger sizes, such as k.
  for (uint32_t larger = 2; !base.ok() && larger <= 1u << 30; larger *= 2) {
    for (size_t d = 0; d < kMaxRank && !base.ok(); ++d) {
      Sizes tried = sizes;
      tried[d] = larger;
      absl::StatusOr<OperatorDesc> desc = describe(tried);
      if (!desc.ok()) continue;
      base = std::move(desc);
      sizes = tried;
    }
  }
  if (!base.ok()) return base.status();
  model.outputs.clear();
  for (size_t i = 0; i < model.schema->outputs.size(); ++i) {
    ModelTensor& to = model.outputs.emplace_back();
    to.name = std::string(model.schema->outputs[i].name);
    to.data_type = base->outputs[i]->data_type;
    to.shape.assign(base->outputs[i]->sizes.begin(), base->outputs[i]->sizes.end());
  }
  for (size_t d = 0; d < kMaxRank; ++d) {
    Sizes varied = sizes;
    ++varied[d];
    const absl::StatusOr<OperatorDesc> other = describe(varied);
    if (!other.ok()) continue;
    for (size_t i = 0; i < model.outputs.size(); ++i) {
      for (size_t o = 0; o < model.outputs[i].shape.size(); ++o) {
        if (other->outputs[i]->sizes[o] != base->outputs[i]->sizes[o]) {
          model.outputs[i].shape[o] = kAnySize;
        }
      }
    }
  }
  return absl::OkStatus();
}

// Names and types of outputs are the configuration's; sizes are inferred, and checked if given.
absl::Status ReadOutputs(const inference::ModelConfig& config, Model& model) {
  const size_t count = model.schema->outputs.size();
  if (config.output_size() > 0 && static_cast<size_t>(config.output_size()) != count) {
    return InvalidField("output", absl::StrCat("output has ", config.output_size(), " tensors; ",
                                               model.schema->name, " gives ", count, "."));
  }
  RETURN_IF_ERROR(InferOutputs(model));
  for (int i = 0; i < config.output_size(); ++i) {
    const inference::ModelOutput& from = config.output(i);
    const size_t index = static_cast<size_t>(i);
    if (model.schema->outputs[index].type != TypeVariable::kIndex ||
        from.data_type() == inference::TYPE_INVALID ||
        from.data_type() == ConfigTypeOf(model.outputs[index].data_type)) {
      continue;
    }
    ASSIGN_OR_RETURN(const DataType type,
                     DecodeDataType(from.data_type(), absl::StrCat("output[", i, "].data_type")));
    Model other = model;
    other.parameters["index_type"] = std::string(NameOf(type));
    if (InferOutputs(other).ok()) model = std::move(other);
  }
  for (int i = 0; i < config.output_size(); ++i) {
    const inference::ModelOutput& from = config.output(i);
    ModelTensor& to = model.outputs[static_cast<size_t>(i)];
    const std::string path = absl::StrCat("output[", i, "]");
    if (!from.name().empty()) to.name = from.name();
    if (from.data_type() != inference::TYPE_INVALID &&
        from.data_type() != ConfigTypeOf(to.data_type)) {
      return InvalidField(
          absl::StrCat(path, ".data_type"),
          absl::StrCat(path, ".data_type is ", inference::DataType_Name(from.data_type()),
                       "; the operator gives ", NameOf(to.data_type), "."));
    }
    const std::vector<int64_t> dims(from.dims().begin(), from.dims().end());
    if (!dims.empty() && dims != to.shape) {
      return InvalidField(
          absl::StrCat(path, ".dims"),
          absl::StrCat(path, ".dims is [", absl::StrJoin(dims, ","), "]; the operator gives [",
                       absl::StrJoin(to.shape, ","), "]."));
    }
  }
  return CheckNames(model.outputs, "output");
}

// Empty if it is not given.
absl::StatusOr<std::string> ReadVersion(const inference::ModelConfig& config) {
  if (!config.version_policy().has_specific()) return "";
  const auto& versions = config.version_policy().specific().versions();
  const std::string field = "version_policy.specific.versions";
  if (versions.size() != 1 || versions[0] < 1) {
    return InvalidField(field, absl::StrCat(field, " is not one positive number."));
  }
  return absl::StrCat(versions[0]);
}

}  // namespace

absl::Status CheckWord(absl::string_view field, const std::string& value,
                       std::initializer_list<absl::string_view> expected) {
  if (value.empty() || absl::c_linear_search(expected, value)) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(field, " (\"", Excerpt(value), "\") is not \"",
                                          absl::StrJoin(expected, "\" or \""), "\"."));
}

absl::StatusOr<std::shared_ptr<Model>> MakeOperatorModel(const inference::ModelConfig& config) {
  RETURN_IF_ERROR(CheckWord("backend", config.backend(), {kPlatform}));
  RETURN_IF_ERROR(CheckWord("platform", config.platform(), {kPlatform}));
  if (config.max_batch_size() != 0) {
    return InvalidField("max_batch_size", absl::StrCat("max_batch_size (", config.max_batch_size(),
                                                       ") is not 0; only ONNX models have it."));
  }
  if (config.has_dynamic_batching()) {
    return InvalidField("dynamic_batching",
                        "dynamic_batching is given; only ONNX models have batches.");
  }
  auto model = std::make_shared<Model>();
  model->name = config.name();
  model->is_built_in = false;
  ASSIGN_OR_RETURN(const std::string version, ReadVersion(config));
  if (!version.empty()) model->version = version;
  RETURN_IF_ERROR(ReadParameters(config, *model));
  RETURN_IF_ERROR(ReadInputs(config, *model));
  RETURN_IF_ERROR(ReadOutputs(config, *model));
  model->warm_ups = config.model_warmup();
  return model;
}

}  // namespace opmill
