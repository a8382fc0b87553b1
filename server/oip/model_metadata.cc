#include "server/oip/model_metadata.h"

#include <string>

#include "server/models/data_types.h"

namespace opmill::oip {

void EncodeMetadata(const Model& model, inference::ModelMetadataResponse& to) {
  to.set_name(model.name);
  to.set_platform(model.graph == nullptr ? std::string(kPlatform) : model.config.platform());
  const auto encode = [](const ModelTensor& from,
                         inference::ModelMetadataResponse::TensorMetadata& tensor) {
    tensor.set_name(from.name);
    tensor.set_datatype(std::string(TypeNameOf(from)));
    tensor.mutable_shape()->Add(from.shape.begin(), from.shape.end());
  };
  for (const ModelTensor& input : model.inputs) encode(input, *to.add_inputs());
  for (const ModelTensor& output : model.outputs) encode(output, *to.add_outputs());
}

void EncodeConfig(const Model& model, inference::ModelConfig& to) {
  if (model.graph != nullptr) {
    to = model.config;
    return;
  }
  to.set_name(model.name);
  to.set_platform(std::string(kPlatform));
  to.set_backend(std::string(kPlatform));
  const auto encode = [](const ModelTensor& from, auto& tensor) {
    tensor.set_name(from.name);
    tensor.set_data_type(ConfigTypeOf(from.data_type));
    tensor.mutable_dims()->Add(from.shape.begin(), from.shape.end());
  };
  for (const ModelTensor& input : model.inputs) encode(input, *to.add_input());
  for (const ModelTensor& output : model.outputs) encode(output, *to.add_output());
  *to.mutable_model_warmup() = model.warm_ups;
  auto& parameters = *to.mutable_parameters();
  parameters["operator"].set_string_value(std::string(model.schema->name));
  for (const auto& [name, text] : model.parameters) parameters[name].set_string_value(text);
}

}  // namespace opmill::oip
