// The models that callers can name.
#ifndef OPMILL_SERVER_MODELS_MODEL_TABLE_H_
#define OPMILL_SERVER_MODELS_MODEL_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/access/watched_files.h"
#include "server/models/model.h"
#include "server/models/model_folder.h"

namespace opmill {

struct IndexEntry {
  std::string name;
  std::string version;
  bool is_ready = false;
  std::string reason;  // why its configuration is not in effect; empty if it is
};

// The built-in models and those of a repository: a folder with one folder for each model, which has
// a config.pbtxt, or folders of versions with a model.onnx. The repository is read again when it
// changes. If a model is invalid, a warning is logged, and it stays as it was; if the repository
// has more than 4096 entries, all models stay. At most 1024 are configured, each version counts.
// Thread-safe.
class ModelTable {
 public:
  // An empty path: no repository. NotFound if it is not a folder, ResourceExhausted if it has too
  // many entries. Paths are UTF-8.
  static absl::StatusOr<std::unique_ptr<ModelTable>> Create(const std::string& repository,
                                                            const onnx::ModelLimits& limits = {});

  // NotFound if there is no model with this name and version; if its configuration or its file is
  // the reason, the error says so. An empty version is the newest.
  absl::StatusOr<std::shared_ptr<const Model>> Find(absl::string_view name,
                                                    absl::string_view version) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The versions that are served, in ascending order.
  std::vector<std::shared_ptr<const Model>> VersionsOf(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // All versions, in the order of their names.
  std::vector<std::shared_ptr<const Model>> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, with the models that have no valid configuration.
  std::vector<IndexEntry> Index() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Models = std::map<std::string, ModelVersions, std::less<>>;  // none is empty
  // Sentences, by the name of the folder and the version; 0: of the model.
  using Errors = std::map<std::string, std::map<uint64_t, std::string>, std::less<>>;

  ModelTable(const std::string& repository, const onnx::ModelLimits& limits);
  // Loads the repository, now and whenever it changes.
  absl::Status Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // The paths of its folders by their names, except hidden ones and lost+found.
  absl::StatusOr<std::map<std::string, std::string>> FindFolders() const;
  std::string Fingerprint() const;
  ModelFolder Read(const std::string& name, const std::string& path,
                   const ModelVersions& before) const;
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string repository_;
  const onnx::ModelLimits limits_;
  Models built_in_;
  mutable absl::Mutex mutex_;
  Models configured_ ABSL_GUARDED_BY(mutex_);
  Errors errors_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WatchedFiles> watched_;  // last: its thread uses all of the above
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_TABLE_H_
