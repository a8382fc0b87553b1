// The configuration of a model with fixed attributes.
#ifndef OPMILL_SERVER_MODELS_MODEL_CONFIG_H_
#define OPMILL_SERVER_MODELS_MODEL_CONFIG_H_

#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "server/models/model.h"

namespace opmill {

// InvalidArgument if the value of a field is neither empty nor one of those expected.
absl::Status CheckWord(absl::string_view field, const std::string& value,
                       std::initializer_list<absl::string_view> expected);

// The model with fixed attributes that the configuration describes.
absl::StatusOr<std::shared_ptr<Model>> MakeOperatorModel(const inference::ModelConfig& config);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_CONFIG_H_
