// One ExecuteStream call: many concurrent executions, each with its own end.
#ifndef OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_
#define OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "proto/stack_message.h"
#include "server/api/stream_state.h"
#include "server/execution/deadline_timer.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"

namespace opmill {

struct ExecuteStreamOptions {
  uint64_t max_chunk_bytes = 0;
  uint32_t max_executions = 0;
};

// The reactor and the lock around a StreamState, which decides what is done. Reads, writes and ends
// of executions arrive on different threads. A thread that reports an event to the state then calls
// Advance, which carries out the state's actions. The object keeps itself alive until the call is
// done and no execution can call it any more.
class ExecuteStreamCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                                public OpenCalls::Call,
                                public std::enable_shared_from_this<ExecuteStreamCall> {
 public:
  // Creates the reactor for gRPC.
  static ExecuteStreamCall* Start(grpc::CallbackServerContext& context, RequestOrigin origin,
                                  Executor& executor, OpenCalls& open_calls, DeadlineTimer& timer,
                                  const ExecuteStreamOptions& options);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);

  bool is_stream() const override { return true; }
  void Drain() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfStalled(absl::Time now, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Incoming {
    explicit Incoming(SplitMessage split) : message(std::move(split)) {}

    StackMessage<v1::ExecuteStreamRequest> header;
    SplitMessage message;
    absl::Time arrived = absl::Now();
  };

  ExecuteStreamCall(grpc::CallbackServerContext& context, RequestOrigin origin, Executor& executor,
                    OpenCalls& open_calls, DeadlineTimer& timer,
                    const ExecuteStreamOptions& options);

  // `reads_ahead` is set on gRPC's threads only: the thread that handles a message also handles the
  // next ones if they arrive in time. Threads of the device have other work.
  void Advance(bool reads_ahead = false) ABSL_LOCKS_EXCLUDED(mutex_);
  StreamState::Work Step(bool reads_ahead) ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(StreamState::Reply reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // On the thread to which Step gave the work.
  void HandleMessage() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TryHandleMessage() ABSL_LOCKS_EXCLUDED(mutex_);  // false: its begin waits for room
  void HandleHalfClose() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Parse();  // message_ into incoming_
  bool HandleBegin(const Incoming& incoming) ABSL_LOCKS_EXCLUDED(mutex_);  // as TryHandleMessage
  void HandleRest(const Incoming& incoming) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ExecutionRequest> MakeRequest(const Incoming& incoming);
  bool MayWait(const absl::Status& refusal) ABSL_LOCKS_EXCLUDED(mutex_);
  void Refuse(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why,
              bool input_may_follow) ABSL_LOCKS_EXCLUDED(mutex_);
  RequestOrigin OriginOf(uint64_t execution_id, absl::Time arrived) const;
  std::shared_ptr<Execution> Find(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void RetryLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Ready(uint64_t id, const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelAll(const StreamState::Executions& executions, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CallbackServerContext& context_;
  Executor& executor_;
  OpenCalls& open_calls_;
  DeadlineTimer& timer_;
  const ExecuteStreamOptions options_;
  const RequestOrigin origin_;
  const absl::Time opened_at_ = absl::Now();

  // Of the handling thread.
  grpc::ByteBuffer message_;
  std::optional<Incoming> incoming_;  // that message, or the one whose begin waits
  uint64_t begins_ = 0;               // begins received

  absl::Mutex mutex_;
  StreamState state_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer read_ ABSL_GUARDED_BY(mutex_);  // owned by gRPC during a read
  grpc::ByteBuffer written_;                       // of the write in flight
  std::shared_ptr<ExecuteStreamCall> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_
