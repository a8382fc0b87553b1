// Reads the configuration of a model: a ModelConfig in protobuf's text format or in JSON.
#ifndef OPMILL_SERVER_MODELS_CONFIG_TEXT_H_
#define OPMILL_SERVER_MODELS_CONFIG_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "inference/model_config.pb.h"

namespace opmill {

struct ParsedConfig {
  inference::ModelConfig config;
  std::vector<std::string> without_effect;  // fields that OpMill accepts but does not use
};

// Of a model of any kind, as its file config.pbtxt has it. `name` is that of its folder. Errors
// name fields from the root of the ModelConfig.
absl::StatusOr<ParsedConfig> ParseConfig(const std::string& name, const std::string& text);
// The same, as a request to load a model has it.
absl::StatusOr<ParsedConfig> ParseJsonConfig(const std::string& name, const std::string& json);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_CONFIG_TEXT_H_
