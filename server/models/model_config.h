// The configuration of a model in a model repository.
#ifndef OPMILL_SERVER_MODELS_MODEL_CONFIG_H_
#define OPMILL_SERVER_MODELS_MODEL_CONFIG_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/models/model.h"

namespace opmill {

// The version that the config.pbtxt of an ONNX model chooses; empty if it chooses none.
absl::StatusOr<std::string> ParseGraphConfig(const std::string& name, const std::string& text);

// Reads a config.pbtxt, a ModelConfig in protobuf's text format. `name` is that of its folder.
// Errors name fields from the root of the ModelConfig.
absl::StatusOr<std::shared_ptr<Model>> ParseModelConfig(const std::string& name,
                                                        const std::string& text);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_CONFIG_H_
