// RepositoryModelLoad and RepositoryModelUnload calls.
#ifndef OPMILL_SERVER_OIP_REPOSITORY_CALL_H_
#define OPMILL_SERVER_OIP_REPOSITORY_CALL_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/message_call.h"
#include "server/models/model_repository.h"

namespace opmill::oip {

// Waits for its turn on the thread of the repository, which also decodes its message: of the
// messages of many calls, which may be long, one at a time is decoded. A load that has started runs
// to its end, and a draining server waits for it; one that is still queued ends with its caller.
class RepositoryCall final : public MessageCall {
 public:
  enum class Kind { kLoad, kUnload };

  RepositoryCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                 const ServiceParts& parts, Kind kind, ModelRepository* repository)
      : MessageCall(context, std::move(origin), parts), kind_(kind), repository_(*repository) {}

 private:
  absl::string_view message_type() const override {
    return kind_ == Kind::kLoad ? "RepositoryModelLoadRequest" : "RepositoryModelUnloadRequest";
  }
  void Receive(grpc::ByteBuffer& message) override;
  void Cancel(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(turn_mutex_);
  void TakeTurn() ABSL_LOCKS_EXCLUDED(turn_mutex_);
  // Takes the message. False if the wait has ended.
  bool EndWait(grpc::ByteBuffer& message) ABSL_LOCKS_EXCLUDED(turn_mutex_);
  void End(const absl::Status& status);

  const Kind kind_;
  ModelRepository& repository_;
  absl::Mutex turn_mutex_;
  bool waits_ ABSL_GUARDED_BY(turn_mutex_) = true;  // for its turn
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(turn_mutex_);
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_REPOSITORY_CALL_H_
