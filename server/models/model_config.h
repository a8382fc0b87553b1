// The configuration of a model in a model repository.
#ifndef OPMILL_SERVER_MODELS_MODEL_CONFIG_H_
#define OPMILL_SERVER_MODELS_MODEL_CONFIG_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "server/models/model.h"

namespace opmill {

// A config.pbtxt: a ModelConfig in protobuf's text format.
struct ParsedConfig {
  inference::ModelConfig config;
  std::vector<std::string> without_effect;  // fields that OpMill accepts but does not use
};

// Of a model of any kind. `name` is that of its folder. Errors name fields from the root of the
// ModelConfig.
absl::StatusOr<ParsedConfig> ParseConfig(const std::string& name, const std::string& text);

// InvalidArgument if the value of a field is neither empty nor one of those expected.
absl::Status CheckWord(absl::string_view field, const std::string& value,
                       std::initializer_list<absl::string_view> expected);

// The model with fixed attributes that the configuration describes.
absl::StatusOr<std::shared_ptr<Model>> MakeOperatorModel(const inference::ModelConfig& config);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_CONFIG_H_
