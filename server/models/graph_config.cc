#include "server/models/graph_config.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "server/models/model_config.h"

namespace opmill {
namespace {

constexpr absl::string_view kFileName = "model.onnx";
constexpr absl::string_view kTritonBackend = "onnxruntime";
constexpr absl::string_view kTritonPlatform = "onnxruntime_onnx";
constexpr int32_t kMostBatchSize = 4096;
constexpr uint64_t kMostDelayMicroseconds = 10'000'000;

// Dimensions of a batch that requests are joined along: the first one of each tensor.
absl::Status CheckBatchDimensions(int32_t max_batch_size, const Model& model) {
  if (max_batch_size < 0 || max_batch_size > kMostBatchSize) {
    return InvalidField("max_batch_size",
                        absl::StrCat("max_batch_size (", max_batch_size,
                                     ") is not at least 0 and at most ", kMostBatchSize, "."));
  }
  if (max_batch_size == 0) return absl::OkStatus();
  if (model.inputs.empty()) {
    return InvalidField("max_batch_size", absl::StrCat("max_batch_size is ", max_batch_size,
                                                       ", but the model has no inputs."));
  }
  const auto refuse = [&](const ModelTensor& tensor, absl::string_view why) {
    return InvalidField("max_batch_size",
                        absl::StrCat("max_batch_size is ", max_batch_size, ", but ",
                                     Excerpt(tensor.name), ", which has the shape [",
                                     absl::StrJoin(tensor.shape, ","), "] in the file, ", why));
  };
  for (const onnx::ModelTensor& input : model.graph->inputs()) {
    if (input.is_form) {
      return refuse(model.inputs[static_cast<size_t>(&input - model.graph->inputs().data())],
                    "decides the form of the model, so that requests cannot be joined.");
    }
  }
  for (const auto* const tensors : {&model.inputs, &model.outputs}) {
    for (const ModelTensor& tensor : *tensors) {
      if (tensor.shape.empty() || tensor.shape[0] != kAnySize) {
        return refuse(tensor, "does not have any size (-1) as its first dimension.");
      }
    }
  }
  return absl::OkStatus();
}

// `batch` is 1 if the dimensions of the configuration lack that of the batch.
absl::Status CheckDims(const google::protobuf::RepeatedField<int64_t>& dims,
                       const std::string& path, size_t batch, ModelTensor& tensor) {
  const std::string field = absl::StrCat(path, ".dims");
  const std::string shape = absl::StrCat("[", absl::StrJoin(tensor.shape, ","), "]");
  if (static_cast<size_t>(dims.size()) + batch != tensor.shape.size()) {
    return InvalidField(
        field, absl::StrCat(field, " is [", absl::StrJoin(dims, ","), "]; in the file ",
                            Excerpt(tensor.name), " has the shape ", shape,
                            batch == 0 ? "." : ", of which max_batch_size takes the first."));
  }
  for (int d = 0; d < dims.size(); ++d) {
    constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
    int64_t& size = tensor.shape[static_cast<size_t>(d) + batch];
    if (dims[d] != kAnySize && (dims[d] < 1 || dims[d] > kMost)) {
      return InvalidField(
          absl::StrCat(field, "[", d, "]"),
          absl::StrCat(field, "[", d, "] (", dims[d],
                       ") is neither -1, for any size, nor at least 1 and at most ", kMost, "."));
    }
    if (dims[d] != kAnySize && size != kAnySize && dims[d] != size) {
      return InvalidField(absl::StrCat(field, "[", d, "]"),
                          absl::StrCat(field, "[", d, "] is ", dims[d], "; in the file ",
                                       Excerpt(tensor.name), " has the shape ", shape, "."));
    }
    if (size == kAnySize) size = dims[d];
  }
  return absl::OkStatus();
}

// Sizes that the file leaves open become those of the configuration.
template <typename Given>
absl::Status CheckTensors(const Given& given, absl::string_view what, bool needs_all, size_t batch,
                          std::vector<ModelTensor>& tensors) {
  if (given.empty()) return absl::OkStatus();
  std::vector<bool> is_given(tensors.size());
  for (int i = 0; i < given.size(); ++i) {
    const std::string path = absl::StrCat(what, "[", i, "]");
    const auto found = absl::c_find_if(
        tensors, [&](const auto& tensor) { return tensor.name == given[i].name(); });
    if (found == tensors.end()) {
      return InvalidField(
          absl::StrCat(path, ".name"),
          absl::StrCat(path, ".name (\"", Excerpt(given[i].name()), "\") is not an ", what,
                       " of the file, which has ", NamesOf(tensors), "."));
    }
    const auto index = static_cast<size_t>(found - tensors.begin());
    if (is_given[index]) {
      return InvalidField(
          absl::StrCat(path, ".name"),
          absl::StrCat(path, ".name (\"", Excerpt(found->name), "\") is given twice."));
    }
    is_given[index] = true;
    if (given[i].data_type() != inference::TYPE_INVALID &&
        given[i].data_type() != ConfigTypeOf(*found)) {
      return InvalidField(
          absl::StrCat(path, ".data_type"),
          absl::StrCat(path, ".data_type is ", inference::DataType_Name(given[i].data_type()),
                       "; in the file ", Excerpt(found->name), " is ",
                       inference::DataType_Name(ConfigTypeOf(*found)), "."));
    }
    RETURN_IF_ERROR(CheckDims(given[i].dims(), path, batch, *found));
  }
  if (!needs_all || absl::c_find(is_given, false) == is_given.end()) return absl::OkStatus();
  return InvalidField(what, absl::StrCat(what, " has ", given.size(), " tensors; the file has ",
                                         tensors.size(), ": ", NamesOf(tensors), "."));
}

absl::Status CheckBatching(const inference::ModelConfig& config) {
  if (!config.has_dynamic_batching()) return absl::OkStatus();
  const inference::ModelDynamicBatching& batching = config.dynamic_batching();
  if (config.max_batch_size() == 0) {
    return InvalidField(
        "dynamic_batching",
        "dynamic_batching is given, but max_batch_size is 0: no requests are joined.");
  }
  for (int i = 0; i < batching.preferred_batch_size_size(); ++i) {
    const int32_t size = batching.preferred_batch_size(i);
    if (size >= 1 && size <= config.max_batch_size()) continue;
    const std::string field = absl::StrCat("dynamic_batching.preferred_batch_size[", i, "]");
    return InvalidField(field, absl::StrCat(field, " (", size, ") is not at least 1 and at most ",
                                            config.max_batch_size(), ", the max_batch_size."));
  }
  if (const uint64_t delay = batching.max_queue_delay_microseconds();
      delay > kMostDelayMicroseconds) {
    const std::string field = "dynamic_batching.max_queue_delay_microseconds";
    return InvalidField(
        field, absl::StrCat(field, " (", delay, ") is more than ", kMostDelayMicroseconds, "."));
  }
  return absl::OkStatus();
}

BatchOptions BatchOptionsOf(const inference::ModelConfig& config) {
  const inference::ModelDynamicBatching& batching = config.dynamic_batching();
  BatchOptions options = {.max_rows = static_cast<uint32_t>(config.max_batch_size()),
                          .preferred_rows = {batching.preferred_batch_size().begin(),
                                             batching.preferred_batch_size().end()},
                          .max_delay = absl::Microseconds(
                              static_cast<int64_t>(batching.max_queue_delay_microseconds()))};
  absl::c_sort(options.preferred_rows);
  return options;
}

template <typename Tensors>
void EncodeTensors(const std::vector<ModelTensor>& from, size_t batch, Tensors& to) {
  to.Clear();
  for (const ModelTensor& tensor : from) {
    auto& encoded = *to.Add();
    encoded.set_name(tensor.name);
    encoded.set_data_type(ConfigTypeOf(tensor));
    encoded.mutable_dims()->Add(tensor.shape.begin() + static_cast<std::ptrdiff_t>(batch),
                                tensor.shape.end());
  }
}

// As Triton completes it.
inference::ModelConfig Completed(const inference::ModelConfig& given, const Model& model) {
  inference::ModelConfig config = given;
  config.set_name(model.name);
  if (config.platform().empty()) config.set_platform(std::string(kTritonPlatform));
  if (config.backend().empty()) config.set_backend(std::string(kTritonBackend));
  if (config.default_model_filename().empty()) {
    config.set_default_model_filename(std::string(kFileName));
  }
  if (!config.has_version_policy()) config.mutable_version_policy()->mutable_latest();
  auto& policy = *config.mutable_version_policy();
  if (policy.has_latest() && policy.latest().num_versions() == 0) {
    policy.mutable_latest()->set_num_versions(1);
  }
  if (config.instance_group().empty()) {
    auto& group = *config.add_instance_group();
    group.set_name(model.name);
    group.set_count(1);
    group.set_kind(inference::ModelInstanceGroup::KIND_CPU);
  }
  const size_t batch = config.max_batch_size() > 0 ? 1 : 0;
  EncodeTensors(model.inputs, batch, *config.mutable_input());
  EncodeTensors(model.outputs, batch, *config.mutable_output());
  return config;
}

}  // namespace

bool IsGraphConfig(const inference::ModelConfig& config) {
  return config.backend() == kTritonBackend || config.platform() == kTritonPlatform;
}

absl::StatusOr<std::string> FileNameOf(const inference::ModelConfig& config) {
  const std::string& name = config.default_model_filename();
  if (name.empty()) return std::string(kFileName);
  if (name != "." && name != ".." && name.find_first_of("/\\:") == std::string::npos) return name;
  return InvalidField("default_model_filename",
                      absl::StrCat("default_model_filename (\"", Excerpt(name),
                                   "\") is not the name of a file in the folder of the version."));
}

absl::StatusOr<std::vector<uint64_t>> ChooseVersions(const inference::ModelConfig& config,
                                                     const std::vector<uint64_t>& versions) {
  const inference::ModelVersionPolicy& policy = config.version_policy();
  if (policy.has_all()) return versions;
  if (!policy.has_specific()) {
    const size_t count =
        std::min<size_t>(std::max(policy.latest().num_versions(), 1u), versions.size());
    return std::vector<uint64_t>(versions.end() - static_cast<std::ptrdiff_t>(count),
                                 versions.end());
  }
  const std::string field = "version_policy.specific.versions";
  std::vector<uint64_t> chosen;
  for (const int64_t version : policy.specific().versions()) {
    if (version < 1) {
      return InvalidField(field, absl::StrCat(field, " has ", version, ", which is not positive."));
    }
    chosen.push_back(static_cast<uint64_t>(version));
    if (absl::c_find(versions, chosen.back()) != versions.end()) continue;
    ASSIGN_OR_RETURN(const std::string file, FileNameOf(config));
    return InvalidField(field, absl::StrCat("There is no ", version, "/", file, "."));
  }
  if (chosen.empty()) return InvalidField(field, absl::StrCat(field, " names no version."));
  absl::c_sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

absl::Status Configure(const inference::ModelConfig& config, Model& model) {
  RETURN_IF_ERROR(CheckWord("backend", config.backend(), {kTritonBackend, kPlatform}));
  RETURN_IF_ERROR(CheckWord("platform", config.platform(), {kTritonPlatform, kPlatform}));
  RETURN_IF_ERROR(CheckBatchDimensions(config.max_batch_size(), model));
  RETURN_IF_ERROR(CheckBatching(config));
  const size_t batch = config.max_batch_size() > 0 ? 1 : 0;
  RETURN_IF_ERROR(CheckTensors(config.input(), "input", true, batch, model.inputs));
  RETURN_IF_ERROR(CheckTensors(config.output(), "output", false, batch, model.outputs));
  model.max_batch_size = static_cast<uint32_t>(config.max_batch_size());
  if (config.has_dynamic_batching()) model.batching = BatchOptionsOf(config);
  model.config = Completed(config, model);
  model.warm_ups = config.model_warmup();
  return absl::OkStatus();
}

}  // namespace opmill
