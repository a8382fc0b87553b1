// The model that a command line names.
#ifndef OPMILL_CLIENT_CLI_WANTED_MODEL_H_
#define OPMILL_CLIENT_CLI_WANTED_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/client.h"

namespace opmill {

// A model of the server, or that of a file, which has its SHA-256.
struct WantedModel {
  v1::ModelInfo info;
  std::string sha256 = {};
};

bool IsModelFile(absl::string_view name);  // "model.onnx"

// Sends a file that the server does not have. Without `version`, the newest that is served; files
// have none.
absl::StatusOr<WantedModel> FindModel(Client& client, const std::string& name,
                                      const std::string& version);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_WANTED_MODEL_H_
