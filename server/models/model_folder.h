// The folder of a model in a repository.
#ifndef OPMILL_SERVER_MODELS_MODEL_FOLDER_H_
#define OPMILL_SERVER_MODELS_MODEL_FOLDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kernels/onnx/model.h"
#include "server/models/compile_limit.h"
#include "server/models/model.h"

namespace opmill {

// The versions of a model. Of one with fixed attributes there is one.
using ModelVersions = std::map<uint64_t, std::shared_ptr<const Model>>;

struct ModelError {
  std::string file;
  absl::Status status;
};

struct ModelFolder {
  ModelVersions versions;
  std::map<uint64_t, ModelError> errors;  // by version; 0: of the model
};

// What a request to load a model has in place of what is in its folder.
struct ModelOverride {
  std::optional<std::string> config;  // JSON
  // By version and name. If there are any, no file of the folder is used.
  std::map<uint64_t, std::map<std::string, std::string>> files;
};

inline constexpr size_t kMostFolderEntries = 4096;  // looking at one takes microseconds

// Reads the configuration, if there is one, and the versions that it chooses. A version whose file
// is the same as in `before`, with the same configuration, is that one; a version that cannot be
// read stays as it was before, and so do all if the configuration is invalid, or none can be read.
// `path` is UTF-8.
ModelFolder ReadModelFolder(const std::string& name, const std::string& path,
                            const onnx::ModelLimits& limits, const CompileLimit& limit,
                            const ModelVersions& before, const ModelOverride& override_with = {});

// Of the configuration in the folder.
std::string ConfigPath(const std::string& path);

// Differs if what ReadModelFolder returns may differ. Files of models are not read for it: they may
// have gigabytes.
std::string StampOfModelFolder(const std::string& path);

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_FOLDER_H_
