// A call that carries one execution: one request message, and as many response messages as the
// outputs need. Protocols derive from it and add the form of their messages.
#ifndef OPMILL_SERVER_API_SINGLE_EXECUTION_CALL_H_
#define OPMILL_SERVER_API_SINGLE_EXECUTION_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/message_call.h"
#include "server/execution/executor.h"

namespace opmill {

class SingleExecutionCall : public MessageCall {
 public:
  using MessageCall::MessageCall;

  void OnWriteDone(bool ok) final ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() final;

  void EndIfStalled(absl::Time now, absl::Duration timeout) final ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfUnread(absl::Time now, const OpenCalls::MayEnd& may_end) final
      ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  enum class Written { kMore, kLast, kError };

  // The methods below are called by one thread at a time.

  // Decodes the message, whose bytes it takes. Sets the program of `begin` if it is valid, even if
  // it refuses the request, and may advance its deadline. If it succeeds without a program,
  // MakeProgram follows.
  virtual absl::Status Decode(grpc::ByteBuffer& message, ExecutionRequest& begin) = 0;
  // Makes the program of `begin` on another thread, then calls `done`, once.
  virtual void MakeProgram(ExecutionRequest& /*begin*/,
                           const std::function<void(const absl::Status&)>& done) {
    done(absl::InternalError("The request has no program."));
  }
  // Ends MakeProgram with this error, unless it has ended. Called by any thread, at any time.
  virtual void CancelProgram(const absl::Status& /*why*/) {}
  // Passes the tensor bytes of the decoded message to Executor::Receive.
  virtual void SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution) = 0;
  // Called when the execution is ready or has failed, before the first response; calls `respond`,
  // possibly later and on another thread.
  virtual void Prepare(Executor& /*executor*/, const std::shared_ptr<Execution>& /*execution*/,
                       const std::function<void()>& respond) {
    respond();
  }
  // Creates the next response of an execution whose results are ready, or of one that has ended in
  // the meantime: then its status says why there is none.
  virtual Written WriteResponse(const std::shared_ptr<Execution>& execution,
                                grpc::ByteBuffer& message) = 0;
  // The call ends without results.
  virtual void Failed() {}

 private:
  void Receive(grpc::ByteBuffer& message) final ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(const absl::Status& why) final ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitProgram() ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  void RefuseRequest(const absl::Status& why);
  void WriteNext() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndUnread(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<ExecutionRequest> begin_;  // of Receive, and moved into the execution

  // gRPC orders the reactions, so one thread at a time uses these.
  std::shared_ptr<Execution> ready_;  // null until its results are ready or it has failed
  grpc::ByteBuffer message_;

  absl::Mutex mutex_;
  std::shared_ptr<Execution> execution_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);  // why it was aborted before the execution began
  // Since when the call has waited for the caller to read.
  absl::Time waits_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  uint64_t written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last message written
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_SINGLE_EXECUTION_CALL_H_
