// The part of a stream's call that all protocols share: the reactor and the lock around a state
// machine, which decides what is done.
#ifndef OPMILL_SERVER_API_STREAM_CALL_H_
#define OPMILL_SERVER_API_STREAM_CALL_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/base/steady_time.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/execution/admission.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/execution/pace.h"
#include "server/observe/log.h"

namespace opmill {

// Reads, writes and ends of executions arrive on different threads. A thread that reports an event
// to the state then calls Advance, which carries out the state's actions. gRPC calls no reaction
// from within the Start functions and Finish, so they are called under the lock: nothing is started
// after Finish.
//
// The call keeps itself alive until it is done, and the callbacks of its executions may keep it
// alive for longer.
template <typename State>
class StreamCall : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                   public OpenCalls::Call {
 public:
  void OnWriteDone(bool ok) final ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Status gone = ok ? absl::OkStatus() : CallerIsGone(context_);
    std::shared_ptr<Execution> complete;
    Executions executions;
    written_.Clear();  // before another thread can start the next write
    {
      const absl::MutexLock lock(&mutex_);
      complete = state_.WriteDone();
      if (!ok) {
        executions = state_.Fail(gone);
        if (complete != nullptr) executions.push_back(complete);
      }
    }
    if (ok && complete != nullptr) executor_.Finish(complete);
    CancelAll(executions, gone);
    Advance();
  }

  void OnCancel() final ABSL_LOCKS_EXCLUDED(mutex_) { Abort(CallerIsGone(context_)); }

  void OnDone() final ABSL_LOCKS_EXCLUDED(mutex_) {
    open_calls_.Remove(*this);
    Executions executions;
    std::shared_ptr<void> self;  // released without the lock
    {
      const absl::MutexLock lock(&mutex_);
      executions = state_.Close();
      self.swap(self_);
    }
    CancelAll(executions, CallerIsGone(context_));
  }

  bool is_stream() const final { return true; }

  void Drain() final ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      state_.Drain();
    }
    Advance();
  }

  void EndIfUnread(absl::Time now, const OpenCalls::MayEnd& may_end) final
      ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      if (!state_.IsUnread(Pace::kPatience + Pace::TimeFor(written_bytes_), now)) return;
    }
    if (!may_end(*origin_.account)) return;
    EndUnread(Admission::Displaced(Admission::Displacement::kUnreadResults));
  }

  void Abort(const absl::Status& why) final ABSL_LOCKS_EXCLUDED(mutex_) {
    Executions executions;
    {
      const absl::MutexLock lock(&mutex_);
      executions = state_.Fail(why);
    }
    CancelAll(executions, why);
    Aborted(why);
    Advance();
  }

 protected:
  using Executions = std::vector<std::shared_ptr<Execution>>;

  StreamCall(grpc::CallbackServerContext& context, RequestOrigin origin, Executor& executor,
             OpenCalls& open_calls, uint32_t max_executions)
      : context_(context),
        executor_(executor),
        origin_(std::move(origin)),
        state_(max_executions),
        open_calls_(open_calls) {}

  // The stream ends with an error: so does what is not an execution yet.
  virtual void Aborted(const absl::Status& /*why*/) {}
  // Carries out what the state decides. The caller keeps the call alive.
  virtual void Advance() ABSL_LOCKS_EXCLUDED(mutex_) = 0;

  // To be called once, before gRPC gets the call. `self` owns it.
  void Open(std::shared_ptr<void> self) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      self_ = std::move(self);
    }
    open_calls_.Add(*this);
    // The headers are sent at once, because a caller may wait for them before it sends.
    StartSendInitialMetadata();
    Advance();
  }

  // `begins`: the executions that the caller has begun.
  void End(const absl::Status& status, uint64_t begins) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    {
      LogLine line(LogLevel::kInfo, "stream");
      origin_.AddTo(line);
      line.Add(status).Add("begins", begins).Add("open", SteadyNow() - opened_at_);
    }
    Finish(ToGrpcStatus(status));
  }

  // Writes `written_`.
  void StartWriting(const grpc::WriteOptions& options = {}) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    written_bytes_ = written_.Length();
    StartWrite(&written_, options);
  }

  void EndUnread(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_) {
    Abort(why);
    context_.TryCancel();  // nothing else ends the write in flight
  }

  void CancelAll(const Executions& executions, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const auto& execution : executions) executor_.Cancel(execution, why);
  }

  void CountPayload(const grpc::ByteBuffer& message) const {
    if (origin_.connection != nullptr) origin_.connection->AddPayload(message.Length());
  }

  // Of an execution of this stream.
  RequestOrigin OriginOf(uint64_t execution_id, absl::Time arrived) const {
    RequestOrigin origin = origin_;
    origin.connection = nullptr;    // the call as a whole counts as one user
    origin.stream_place = nullptr;  // the same
    origin.execution_id = execution_id;
    origin.arrived = arrived;
    return origin;
  }

  grpc::CallbackServerContext& context_;
  Executor& executor_;
  const RequestOrigin origin_;

  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer written_;  // of the write in flight

 private:
  OpenCalls& open_calls_;
  const absl::Time opened_at_ = SteadyNow();
  uint64_t written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last message written
  std::shared_ptr<void> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_STREAM_CALL_H_
