// What the protocol says of a model.
#ifndef OPMILL_SERVER_OIP_MODEL_METADATA_H_
#define OPMILL_SERVER_OIP_MODEL_METADATA_H_

#include "inference/grpc_service.pb.h"
#include "inference/model_config.pb.h"
#include "server/models/model.h"

namespace opmill::oip {

void EncodeMetadata(const Model& model, inference::ModelMetadataResponse& to);
void EncodeConfig(const Model& model, inference::ModelConfig& to);

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_MODEL_METADATA_H_
