// The folder of models, and when it is read.
#ifndef OPMILL_SERVER_MODELS_MODEL_REPOSITORY_H_
#define OPMILL_SERVER_MODELS_MODEL_REPOSITORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/onnx/model.h"
#include "server/access/watched_files.h"
#include "server/config/options.h"
#include "server/host/worker_pool.h"
#include "server/models/compile_limit.h"
#include "server/models/model_folder.h"
#include "server/models/model_table.h"

namespace opmill {

// A folder with one folder for each model, which has a config.pbtxt, or folders of versions with a
// model.onnx. If a model is invalid, a warning is logged, and it stays as it was. At most 1024 are
// served, each version counts. One model is read at a time.
class ModelRepository {
 public:
  // What must be done for a model before it is served. Called on the thread that reads it; may
  // take long.
  using Prepare = std::function<absl::Status(const std::shared_ptr<const Model>& model)>;

  // Reads what is served from the start. Without a folder: the built-in models only. NotFound if it
  // is not a folder, ResourceExhausted if it has more than 4096 entries; if it has later, all
  // models stay. `limit` and `table` must outlive it. CompileLimit::StopBackground ends loads.
  static absl::StatusOr<std::unique_ptr<ModelRepository>> Open(const RepositoryOptions& options,
                                                               const onnx::ModelLimits& limits,
                                                               const CompileLimit& limit,
                                                               ModelTable& table, Prepare prepare);

  // Why callers may not load and unload models; OK if they may.
  absl::Status CheckControl() const;
  // Calls it on the thread of Load and Unload, after what was posted before. Only if they may.
  // ResourceExhausted if too much waits.
  absl::Status Post(std::function<void()> work);
  // Only within Post. A model that cannot be loaded stays as it was.
  absl::Status Load(const std::string& name, const ModelOverride& override_with);
  // Its requests in progress end as they would have.
  absl::Status Unload(const std::string& name);

 private:
  ModelRepository(const RepositoryOptions& options, const onnx::ModelLimits& limits,
                  const CompileLimit& limit, ModelTable& table, Prepare prepare);
  absl::Status Start();
  // The paths of its folders by their names, except hidden ones and lost+found.
  absl::StatusOr<std::map<std::string, std::string>> FindFolders() const;
  std::string Fingerprint() const;
  absl::Status ReadAll();
  void LoadFirst();
  void ListFolders();
  absl::Status CheckName(const std::string& name) const;
  ModelFolder Read(const std::string& name, const std::string& path,
                   const ModelOverride& override_with) const;
  void PrepareNew(const std::string& path, const ModelVersions& before, ModelFolder& folder) const;

  const RepositoryOptions options_;
  const onnx::ModelLimits limits_;
  const CompileLimit& limit_;
  ModelTable& table_;
  const Prepare prepare_;
  std::atomic<uint32_t> posted_ = 0;
  // Last: their threads use all of the above. Null if callers may not load; if nothing is watched.
  std::unique_ptr<WorkerPool> loader_;
  std::unique_ptr<WatchedFiles> watched_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_MODEL_REPOSITORY_H_
