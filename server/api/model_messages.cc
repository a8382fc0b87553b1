#include "server/api/model_messages.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "proto/duration.h"
#include "server/api/grpc_status.h"
#include "server/api/request_decoder.h"
#include "server/models/graph_program.h"

namespace opmill {
namespace {

std::string InputPath(size_t position) { return absl::StrCat("inputs[", position, "]"); }

std::string TypeText(const ModelTensor& tensor) {
  return tensor.is_bool ? "BOOL (elements of UINT8)" : std::string(ToString(tensor.data_type));
}

std::string ShapeText(const ModelTensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape, ","), "]");
}

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

// Decodes a request for one model.
class ModelDecoder {
 public:
  ModelDecoder(const v1::ModelDesc& from, RequestedModel& to)
      : from_(from), to_(to), model_(*to.model) {}

  absl::StatusOr<std::shared_ptr<const Program>> Decode() {
    RETURN_IF_ERROR(DecodeInputs());
    return model_.graph == nullptr ? DescribeOperator() : BindGraph();
  }

 private:
  // Sets `inputs_` and `positions_`, which are in the order of the model.
  absl::Status DecodeInputs() {
    const size_t count = model_.inputs.size();
    if (static_cast<size_t>(from_.inputs_size()) != count) {
      return InvalidField(
          "inputs", absl::StrCat("inputs has ", from_.inputs_size(), " tensors; ", model_.name,
                                 " takes ", count, ": ", NamesOf(model_.inputs), "."));
    }
    inputs_.resize(count);
    positions_.assign(count, count);
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const size_t index, IndexOfInput(i));
      ASSIGN_OR_RETURN(TensorDesc tensor, DecodeInput(i, model_.inputs[index]));
      to_.inputs.push_back(tensor);
      inputs_[index] = std::move(tensor);
      positions_[index] = i;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> IndexOfInput(size_t position) const {
    const std::string& name = input(position).name();
    const std::string path = absl::StrCat(InputPath(position), ".name");
    if (name.empty() != input(0).name().empty()) {
      return InvalidField(path, absl::StrCat(path, " is ", name.empty() ? "not given" : "given",
                                             "; either all inputs have a name, or none."));
    }
    const size_t index = name.empty() ? position : IndexOf(model_.inputs, name);
    if (index == model_.inputs.size()) {
      return InvalidField(
          path, absl::StrCat(path, " (\"", Excerpt(name), "\") is not an input of ", model_.name,
                             ", which takes ", NamesOf(model_.inputs), "."));
    }
    if (positions_[index] == positions_.size()) return index;
    return InvalidField(path, absl::StrCat(path, " (\"", Excerpt(name), "\") is given twice."));
  }

  absl::StatusOr<TensorDesc> DecodeInput(size_t position, const ModelTensor& expected) const {
    const std::string path = absl::StrCat(InputPath(position), ".tensor");
    const auto check_rank = [&](const char* list, int count) {
      if (static_cast<uint32_t>(count) <= kMaxRank) return absl::OkStatus();
      const std::string field = absl::StrCat(path, ".", list);
      return InvalidField(
          field, absl::StrCat(field, " has ", count, " numbers; the limit is ", kMaxRank, "."));
    };
    RETURN_IF_ERROR(check_rank("sizes", input(position).tensor().sizes_size()));
    RETURN_IF_ERROR(check_rank("strides", input(position).tensor().strides_size()));
    ASSIGN_OR_RETURN(TensorDesc tensor, DecodeTensor(input(position).tensor(), path));
    if (tensor.data_type != expected.data_type) {
      return InvalidField(
          absl::StrCat(path, ".data_type"),
          absl::StrCat("The input ", Excerpt(expected.name), " of ", model_.name, " is ",
                       TypeText(expected), ", not ", ToString(tensor.data_type), "."));
    }
    RETURN_IF_ERROR(CheckBatch(model_, tensor, absl::StrCat(path, ".sizes")));
    if (!TakesSizes(expected, tensor.sizes)) {
      return InvalidField(
          absl::StrCat(path, ".sizes"),
          absl::StrCat("The input ", Excerpt(expected.name), " of ", model_.name, " has the sizes ",
                       ShapeText(expected), ", not [", absl::StrJoin(tensor.sizes, ","), "]."));
    }
    const auto zero = absl::c_find(tensor.sizes, 0u);
    if (zero != tensor.sizes.end()) {
      const std::string field = absl::StrCat(path, ".sizes[", zero - tensor.sizes.begin(), "]");
      return InvalidField(field, absl::StrCat(field, " (0) is not at least 1."));
    }
    if (!tensor.strides.empty() && tensor.strides != PackedStrides(tensor.sizes)) {
      return InvalidField(absl::StrCat(path, ".strides"),
                          absl::StrCat(path, ".strides is [", absl::StrJoin(tensor.strides, ","),
                                       "]; models take packed tensors, which need none."));
    }
    tensor.strides.clear();
    return tensor;
  }

  absl::StatusOr<std::shared_ptr<const Program>> DescribeOperator() {
    for (size_t i = 0; i < inputs_.size(); ++i) RETURN_IF_ERROR(CheckNoValue(i));
    absl::StatusOr<OperatorDesc> desc = DescribeRequest(model_, inputs_, {});
    if (!desc.ok()) return NamingInputs(desc.status());
    to_.program_inputs.resize(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      to_.program_inputs[positions_[i]] = static_cast<uint32_t>(i);
    }
    return std::make_shared<const Program>(ProgramOf(*std::move(desc)));
  }

  absl::StatusOr<std::shared_ptr<const Program>> BindGraph() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!model_.graph->inputs()[i].is_form) RETURN_IF_ERROR(CheckNoValue(i));
    }
    const auto path_of = [this](size_t index) { return InputPath(positions_[index]); };
    const auto read = [this](size_t index, absl::Span<std::byte> bytes) {
      return ReadValue(index, bytes);
    };
    ASSIGN_OR_RETURN(to_.graph, GraphProgramFor(model_, inputs_, path_of, read));
    to_.program_inputs.assign(inputs_.size(), RequestedModel::kInProgram);
    for (size_t i = 0; i < to_.graph->inputs.size(); ++i) {
      to_.program_inputs[positions_[to_.graph->inputs[i]]] = static_cast<uint32_t>(i);
    }
    return std::shared_ptr<const Program>(to_.graph, &to_.graph->program);
  }

  absl::Status CheckNoValue(size_t index) const {
    if (input(positions_[index]).value().empty()) return absl::OkStatus();
    const std::string path = absl::StrCat(InputPath(positions_[index]), ".value");
    return InvalidField(path, absl::StrCat(path, " is given, but no size of ", model_.name,
                                           " depends on the elements of the input ",
                                           Excerpt(model_.inputs[index].name), "."));
  }

  absl::Status ReadValue(size_t index, absl::Span<std::byte> bytes) const {
    const std::string& value = input(positions_[index]).value();
    if (value.size() == bytes.size()) {
      std::copy_n(reinterpret_cast<const std::byte*>(value.data()), value.size(), bytes.data());
      return absl::OkStatus();
    }
    const std::string path = absl::StrCat(InputPath(positions_[index]), ".value");
    return InvalidField(path, absl::StrCat(path, " has ", value.size(), " bytes; ",
                                           ToString(inputs_[index]), " takes ", bytes.size(),
                                           ". The model depends on the elements of the input ",
                                           Excerpt(model_.inputs[index].name), "."));
  }

  // Renames "input.sizes[1]" to "inputs[0].tensor.sizes[1]".
  absl::Status NamingInputs(const absl::Status& status) const {
    const std::string field = FieldOf(status).value_or("");
    const size_t end = std::min(field.find_first_of(".["), field.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (field.substr(0, end) != model_.schema->inputs[i].name) continue;
      return WithField(status,
                       absl::StrCat(InputPath(positions_[i]), ".tensor", field.substr(end)));
    }
    return WithField(status, "inputs");
  }

  const v1::ModelInput& input(size_t position) const {
    return from_.inputs(static_cast<int>(position));
  }

  const v1::ModelDesc& from_;
  RequestedModel& to_;
  const Model& model_;
  std::vector<TensorDesc> inputs_;
  std::vector<size_t> positions_;  // in the request; their number if the input has not come yet
};

void EncodeModelTensor(const ModelTensor& from, v1::ModelTensor& to) {
  to.set_name(from.name);
  to.set_data_type(EncodeDataType(from.data_type));
  to.set_is_bool(from.is_bool);
  to.mutable_sizes()->Add(from.shape.begin(), from.shape.end());
}

void EncodeModel(const Model& from, v1::ModelInfo& to) {
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    v1::ModelTensor& input = *to.add_inputs();
    EncodeModelTensor(from.inputs[i], input);
    input.set_needs_value(from.graph != nullptr && from.graph->inputs()[i].is_form);
  }
  for (const ModelTensor& output : from.outputs) EncodeModelTensor(output, *to.add_outputs());
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

absl::StatusOr<std::shared_ptr<const Program>> DecodeModel(const v1::ModelDesc& from,
                                                           const ModelTable& models,
                                                           RequestedModel& to) {
  absl::StatusOr<std::shared_ptr<const Model>> model =
      FindModel(models, from.name(), from.version());
  if (!model.ok()) return UnderPath("model", model.status());
  to.model = *std::move(model);
  absl::StatusOr<std::shared_ptr<const Program>> program = ModelDecoder(from, to).Decode();
  if (!program.ok()) return UnderPath("model", program.status());
  return program;
}

void EncodeOutputs(const RequestedModel& model, const std::vector<TensorDesc>& outputs,
                   v1::ExecutionStarted& to) {
  EncodeOutputsOf(model, outputs, to);
}

void EncodeOutputs(const RequestedModel& model, const std::vector<TensorDesc>& outputs,
                   v1::CompileOperatorResponse& to) {
  EncodeOutputsOf(model, outputs, to);
}

absl::Status EncodeModels(const ModelTable& models, const std::string& name,
                          v1::ListModelsResponse& to) {
  for (const IndexEntry& entry : models.Index()) {
    if (!name.empty() && name != entry.name) continue;
    const absl::StatusOr<std::shared_ptr<const Model>> model =
        models.Find(entry.name, entry.version);
    if (model.ok() && (*model)->is_built_in) continue;
    v1::ModelInfo& info = *to.add_models();
    info.set_name(entry.name);
    info.set_version(entry.version);
    info.set_ready(entry.state == ModelState::kReady);
    info.set_reason(entry.reason);
    if (model.ok()) EncodeModel(**model, info);
  }
  if (name.empty() || to.models_size() > 0) return absl::OkStatus();
  return FindModel(models, name, "").status();
}

void EncodeModelStatistics(const ModelTable& models, v1::GetStatisticsResponse& to) {
  for (const std::shared_ptr<const Model>& model : models.All()) {
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
