// The models that callers can name.
#ifndef OPMILL_SERVER_OIP_MODEL_TABLE_H_
#define OPMILL_SERVER_OIP_MODEL_TABLE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/access/watched_files.h"
#include "server/oip/model.h"

namespace opmill::oip {

struct IndexEntry {
  std::string name;
  std::string version;
  bool is_ready = false;
  std::string reason;  // why its configuration is not in effect; empty if it is
};

// The built-in models and those of a repository: a folder with one folder for each model, which has
// a config.pbtxt. The repository is read again when it changes. If a configuration is invalid, a
// warning is logged, and the model stays as it was; if the repository has more than 4096 entries,
// all models stay. At most 1024 models are configured. Thread-safe.
class ModelTable {
 public:
  // An empty path: no repository. NotFound if it is not a folder, ResourceExhausted if it has too
  // many entries. Paths are UTF-8.
  static absl::StatusOr<std::unique_ptr<ModelTable>> Create(const std::string& repository);

  // NotFound if there is no model with this name and version; if its configuration is the reason,
  // the error says so. An empty version is any.
  absl::StatusOr<std::shared_ptr<const Model>> Find(absl::string_view name,
                                                    absl::string_view version) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // In the order of their names.
  std::vector<std::shared_ptr<const Model>> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, with the models that have no valid configuration.
  std::vector<IndexEntry> Index() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Models = std::map<std::string, std::shared_ptr<const Model>, std::less<>>;

  using Paths = std::map<std::string, std::string>;

  explicit ModelTable(const std::string& repository);
  // Loads the repository, now and whenever it changes.
  absl::Status Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // The folders of the repository, except hidden ones and lost+found, and the path of the
  // configuration of each.
  absl::StatusOr<Paths> ConfigPaths() const;
  absl::StatusOr<std::shared_ptr<Model>> Read(const std::string& name,
                                              const std::string& path) const;
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string repository_;
  Models built_in_;
  mutable absl::Mutex mutex_;
  Models configured_ ABSL_GUARDED_BY(mutex_);
  // By the name of the folder.
  std::map<std::string, std::string, std::less<>> errors_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WatchedFiles> watched_;  // last: its thread uses all of the above
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_MODEL_TABLE_H_
