// The models that callers can name.
#ifndef OPMILL_SERVER_MODELS_MODEL_TABLE_H_
#define OPMILL_SERVER_MODELS_MODEL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/models/model.h"
#include "server/models/model_folder.h"

namespace opmill {

enum class ModelState { kReady, kLoading, kUnavailable };

struct IndexEntry {
  std::string name;
  std::string version;
  ModelState state = ModelState::kUnavailable;
  std::string reason;  // why its configuration is not in effect; empty if it is
};

// The built-in models, and those of a repository, which sets them. Thread-safe.
class ModelTable {
 public:
  ModelTable();

  // NotFound if there is no model with this name and version; if its configuration or its file is
  // the reason, the error says so. Unavailable while it is read, and was not served before. An
  // empty version is the newest.
  absl::StatusOr<std::shared_ptr<const Model>> Find(absl::string_view name,
                                                    absl::string_view version) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The versions that are served, in ascending order.
  std::vector<std::shared_ptr<const Model>> VersionsOf(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // All versions, in the order of their names.
  std::vector<std::shared_ptr<const Model>> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, with the models that are not served.
  std::vector<IndexEntry> Index() const ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsBuiltIn(absl::string_view name) const { return built_in_.contains(name); }

  // Of the models of the repository: what is served under a name, and how many that are.
  ModelVersions Served(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t CountServed() const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetLoading(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the loading. What is in use stays alive until its requests have ended.
  void Set(const std::string& name, const ModelFolder& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  // NotFound if the repository has no such model.
  absl::Status Unload(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes all others.
  void KeepOnly(const std::set<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);
  // The folders of the repository: those that are not loaded are listed as such, and what is not
  // served and has no folder is not listed.
  void ListFolders(const std::set<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Phase { kRead, kLoading, kNotLoaded, kUnloaded };

  // Of a name of the repository.
  struct Entry {
    Phase phase = Phase::kRead;
    ModelVersions versions;
    std::map<uint64_t, std::string> errors;  // sentences, by version; 0: of the model
  };

  static absl::Status WhyNot(absl::string_view name, const Entry* entry, uint64_t version);

  std::map<std::string, ModelVersions, std::less<>> built_in_;  // never changes
  mutable absl::Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_TABLE_H_
