// A call that carries one execution: one request message, and as many response messages as the
// outputs need. Protocols derive from it and add the form of their messages.
#ifndef OPMILL_SERVER_API_SINGLE_EXECUTION_CALL_H_
#define OPMILL_SERVER_API_SINGLE_EXECUTION_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/base/steady_time.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"

namespace opmill {

// The call starts with its headers, before its message arrives, so that a missing message is
// noticed (EndIfStalled). Deletes itself when the call is done.
class SingleExecutionCall : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public OpenCalls::Call {
 public:
  // Creates a call of a derived class and starts it.
  template <typename Call, typename... Arguments>
  static Call* Start(Arguments&&... arguments) {
    auto* const call = new Call(std::forward<Arguments>(arguments)...);
    call->StartReading();
    return call;
  }

  SingleExecutionCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                      Executor& executor, OpenCalls& open_calls);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override;

  void Drain() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfStalled(absl::Time now, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfUnread(absl::Time now, const OpenCalls::MayEnd& may_end) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  enum class Written { kMore, kLast, kError };

  // The methods below are called by one thread at a time.

  virtual absl::string_view message_type() const = 0;
  // Decodes the message, which stays valid until SendInputs returns. Sets the program of `begin`
  // if it is valid, even if it refuses the request, and may advance its deadline. If it succeeds
  // without a program, MakeProgram follows.
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
  // Only once the object is complete: from then on other threads call its methods.
  void StartReading();
  void Execute() ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitProgram() ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  void Refuse(const absl::Status& why);
  void Release();
  // Ends the call if its message has not come yet; false if it has.
  bool EndWithoutMessage(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteNext() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndUnread(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CallbackServerContext& context_;
  Executor& executor_;
  OpenCalls& open_calls_;
  RequestOrigin origin_;                   // moved into begin_
  grpc::ByteBuffer request_;               // owned by the read, then by its handler
  std::optional<ExecutionRequest> begin_;  // of its handler, and moved into the execution
  // gRPC, until OnDone, and a worker that goes on after it has made the program.
  std::atomic<uint32_t> users_ = 1;

  // gRPC orders the reactions, so one thread at a time uses these.
  std::shared_ptr<Execution> ready_;  // null until its results are ready or it has failed
  grpc::ByteBuffer message_;

  absl::Mutex mutex_;
  std::shared_ptr<Execution> execution_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);  // why it was aborted before the execution began
  bool waits_for_message_ ABSL_GUARDED_BY(mutex_) = true;
  // Since when the call has waited for the caller to send or to read; otherwise InfiniteFuture.
  absl::Time waits_since_ ABSL_GUARDED_BY(mutex_) = SteadyNow();
  uint64_t written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last message written
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_SINGLE_EXECUTION_CALL_H_
