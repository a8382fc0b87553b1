#include "server/api/model_messages.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "proto/duration.h"
#include "server/api/request_decoder.h"

namespace opmill {
namespace {

void EncodeModelTensor(const ModelTensor& from, v1::ModelTensor& to) {
  to.set_name(from.name);
  to.set_data_type(EncodeDataType(from.data_type));
  to.set_is_bool(from.is_bool);
  to.mutable_sizes()->Add(from.shape.begin(), from.shape.end());
}

template <typename Response>
void EncodeOutputsOf(const RequestedModel& model, const std::vector<TensorDesc>& outputs,
                     Response& to) {
  to.set_model_version(model.model->version);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ModelTensor output = model.model->outputs[i];
    if (model.graph == nullptr) {
      output.shape.assign(outputs[i].sizes.begin(), outputs[i].sizes.end());
    } else {
      output.shape = model.graph->outputs[i].sizes;
    }
    EncodeModelTensor(output, *to.add_model_outputs());
    v1::TensorDesc& desc = *to.add_outputs();
    desc.set_data_type(EncodeDataType(output.data_type));
    for (const int64_t size : output.shape) desc.add_sizes(static_cast<uint32_t>(size));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Model>> FindModel(const ModelTable& models,
                                                       const std::string& name,
                                                       const std::string& version) {
  absl::StatusOr<std::shared_ptr<const Model>> model = models.Find(name, version);
  if (!model.ok()) {
    const bool is_version = FieldOf(model.status()) == "model_version";
    return WithField(model.status(), is_version ? "version" : "name");
  }
  if (!(*model)->is_built_in) return model;
  return WithField(absl::NotFoundError(absl::StrCat(
                       name, " is an operator of this server, not a model of its repository.")),
                   "name");
}

void EncodeOutputs(const RequestedModel& model, const std::vector<TensorDesc>& outputs,
                   v1::ExecutionStarted& to) {
  EncodeOutputsOf(model, outputs, to);
}

void EncodeOutputs(const RequestedModel& model, const std::vector<TensorDesc>& outputs,
                   v1::CompileOperatorResponse& to) {
  EncodeOutputsOf(model, outputs, to);
}

void EncodeModel(const Model& from, v1::ModelInfo& to) {
  to.set_name(from.name);
  to.set_version(from.version);
  to.set_ready(true);
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    v1::ModelTensor& input = *to.add_inputs();
    EncodeModelTensor(from.inputs[i], input);
    input.set_needs_value(from.graph != nullptr && from.graph->inputs()[i].is_form);
  }
  for (const ModelTensor& output : from.outputs) EncodeModelTensor(output, *to.add_outputs());
}

absl::Status EncodeModels(const ModelTable& models, const std::string& name,
                          v1::ListModelsResponse& to) {
  for (const IndexEntry& entry : models.Index()) {
    if (!name.empty() && name != entry.name) continue;
    const absl::StatusOr<std::shared_ptr<const Model>> model =
        models.Find(entry.name, entry.version);
    if (model.ok() && (*model)->is_built_in) continue;
    v1::ModelInfo& info = *to.add_models();
    if (model.ok()) EncodeModel(**model, info);
    info.set_name(entry.name);
    info.set_version(entry.version);
    info.set_ready(entry.state == ModelState::kReady);
    info.set_reason(entry.reason);
  }
  if (name.empty() || to.models_size() > 0) return absl::OkStatus();
  return FindModel(models, name, "").status();
}

void EncodeModelStatistics(const ModelTable& repository, const InlineModels& inline_models,
                           v1::GetStatisticsResponse& to) {
  std::vector<std::shared_ptr<const Model>> models = repository.All();
  absl::c_move(inline_models.All(), std::back_inserter(models));
  const InlineModelCounts kept = inline_models.counts();
  to.mutable_inline_models()->set_models(kept.models);
  to.mutable_inline_models()->set_bytes(kept.bytes);
  to.mutable_inline_models()->set_reads(kept.reads);
  to.mutable_inline_models()->set_evictions(kept.evictions);
  for (const std::shared_ptr<const Model>& model : models) {
    if (model->is_built_in) continue;
    inference::ModelStatistics counts;
    model->statistics->Encode(counts);
    const inference::InferStatistics& ends = counts.inference_stats();
    if (ends.success().count() + ends.fail().count() == 0) continue;
    v1::ModelStatistics& encoded = *to.add_models();
    encoded.set_model(model->name);
    encoded.set_version(model->version);
    encoded.set_succeeded(ends.success().count());
    encoded.set_failed(ends.fail().count());
    const auto encode = [](const inference::StatisticDuration& from, auto& duration) {
      EncodeDuration(absl::Nanoseconds(static_cast<int64_t>(from.ns())), duration);
    };
    encode(ends.compute_input(), *encoded.mutable_upload());
    encode(ends.queue(), *encoded.mutable_queue());
    encode(ends.compute_infer(), *encoded.mutable_compute());
    encode(ends.compute_output(), *encoded.mutable_download());
  }
}

}  // namespace opmill
