// Finds the model that a request asks for.
#ifndef OPMILL_SERVER_API_MODEL_FINDER_H_
#define OPMILL_SERVER_API_MODEL_FINDER_H_

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kernels/base/byte_budget.h"
#include "opmill/v1/model.pb.h"
#include "proto/payload.h"
#include "server/api/grpc_status.h"
#include "server/execution/executor.h"
#include "server/execution/model_programs.h"
#include "server/models/inline_models.h"
#include "server/models/model_table.h"

namespace opmill {

// Where models come from. All parts must outlive the requests.
struct ModelSources {
  const ModelTable& repository;
  InlineModels& inline_models;
  ModelPrograms& programs;
  const ByteBudget& memory;
};

// The model of one request. Not thread-safe, except for Cancel.
class ModelFinder {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // Errors name fields from the root of the message, where `path` is that of what has the model:
  // "begin", or empty.
  ModelFinder(const ModelSources& sources, absl::string_view path)
      : sources_(sources), path_(path), pending_(std::make_shared<PendingWork>()) {}

  // Finds the model, or whether a file comes with the request that must be read: then it succeeds
  // without a model, and Read follows.
  absl::Status Find(const v1::ModelDesc& desc, std::optional<OwnedPayload> file);
  // Reads the file, then calls `done`, once, possibly on a worker; with an error at the deadline or
  // after Cancel.
  void Read(Executor& executor, RequestOrigin& origin, absl::Time deadline, const Done& done);
  // Ends the work of this finder, also that which Await has begun. Called by any thread, at any
  // time.
  void Cancel(const absl::Status& why) {
    const std::shared_ptr<PendingWork> pending = pending_;  // what it ends may delete this
    pending->Cancel(sources_.programs, why);
  }
  absl::Status cancelled() const { return pending_->cancelled(); }
  std::stop_token token() const { return pending_->token(); }  // stops at Cancel

  // Null until it is found.
  const std::shared_ptr<const Model>& model() const { return model_; }
  const ModelSources& sources() const { return sources_; }
  // Begins work that Cancel ends, too. Calls `done` with the error if it does not begin.
  using Begin = absl::FunctionRef<absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>>()>;
  void Await(Begin begin, const Done& done);
  // Errors of fields of the model's message, and of the message that has it, from the root of the
  // request.
  absl::Status OfModel(const absl::Status& status) const {
    return OfMessage(UnderPath("model", status));
  }
  absl::Status OfMessage(const absl::Status& status) const {
    return path_.empty() ? status : UnderPath(path_, status);
  }

 private:
  absl::Status FindByContent(const v1::ModelDesc& desc);

  const ModelSources sources_;
  const absl::string_view path_;
  // Outlives the finder, which another thread may delete once it has the result.
  const std::shared_ptr<PendingWork> pending_;
  std::string sha256_;
  std::optional<OwnedPayload> file_;
  std::shared_ptr<const Model> model_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_MODEL_FINDER_H_
