// The configuration of an ONNX model, as Triton's users write it.
#ifndef OPMILL_SERVER_MODELS_GRAPH_CONFIG_H_
#define OPMILL_SERVER_MODELS_GRAPH_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/model_config.pb.h"
#include "server/models/model.h"

namespace opmill {

// Whether it is that of an ONNX model, as it says.
bool IsGraphConfig(const inference::ModelConfig& config);

// The name of the model's file in the folder of each version.
absl::StatusOr<std::string> FileNameOf(const inference::ModelConfig& config);

// Those of the versions, which are in ascending order, that are served.
absl::StatusOr<std::vector<uint64_t>> ChooseVersions(const inference::ModelConfig& config,
                                                     const std::vector<uint64_t>& versions);

// Checks the configuration against the model as its file has it. Sets its batches, and the
// configuration that it reports: what is not given is what the file says, as Triton completes it.
absl::Status Configure(const inference::ModelConfig& config, Model& model);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_GRAPH_CONFIG_H_
