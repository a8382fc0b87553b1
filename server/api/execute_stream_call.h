// One ExecuteStream call: many concurrent executions, each with its own end.
#ifndef OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_
#define OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "server/api/result_stream.h"
#include "server/config/options.h"
#include "server/execution/deadline_timer.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"

namespace opmill {

struct ExecuteStreamOptions {
  uint64_t max_chunk_bytes = 0;
  uint32_t max_executions = 0;
};

// Reads, writes and ends of executions arrive on different threads. Each thread that changes the
// state calls Advance, which does what the new state allows. At most one write is in flight. One
// message is handled at a time; the next one is read meanwhile, so that the network does not wait
// for the copying. The object keeps itself alive until the call is done and no execution can call
// it any more.
//
// A begin without room waits, together with everything behind it, while executions of this stream
// are being computed or streamed, and for kPatience after that. Then it is refused. A caller that
// begins executions faster than the server completes them is therefore slowed down, not refused.
class ExecuteStreamCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                                public OpenCalls::Call,
                                public std::enable_shared_from_this<ExecuteStreamCall> {
 public:
  // Creates the reactor for gRPC.
  static ExecuteStreamCall* Start(grpc::CallbackServerContext& context, RequestOrigin origin,
                                  Executor& executor, OpenCalls& open_calls, DeadlineTimer& timer,
                                  const ExecuteStreamOptions& options);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  bool is_stream() const override { return true; }
  void Drain() override;
  void Abort(const absl::Status& why) override;
  void EndIfStalled(absl::Time now, absl::Duration timeout) override;

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(2);
  static constexpr absl::Duration kRetryInterval = absl::Milliseconds(20);
  static constexpr size_t kMaxWaitingErrors = 1024;  // reading pauses while more errors are unsent
  static constexpr size_t kMaxAbandoned = 4096;

  // A response to be written: a result, or the end of an execution that failed.
  struct Reply {
    uint64_t id = 0;
    std::unique_ptr<ResultStream> results;
    absl::Status error;
  };

  struct Incoming {
    v1::ExecuteStreamRequest header;
    SplitMessage message;
    absl::Time arrived;
  };

  ExecuteStreamCall(grpc::CallbackServerContext& context, RequestOrigin origin, Executor& executor,
                    OpenCalls& open_calls, DeadlineTimer& timer,
                    const ExecuteStreamOptions& options);

  enum class Read {
    kNone,        // no read requested: too many errors are unsent
    kStarted,     // gRPC is reading into incoming_
    kArrived,     // incoming_ holds an unhandled message
    kHalfClosed,  // incomplete executions have not been refused yet
    kEnded,
  };
  enum class Work { kNone, kMessage, kHalfClose };

  void HandleMessage() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TryHandleMessage();  // false: there is no room yet
  void HandleHalfClose() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Incoming> Parse() const;
  bool HandleBegin(const Incoming& incoming);  // false: there is no room yet
  void WakeLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandleRest(const Incoming& incoming);
  RequestOrigin OriginOf(uint64_t execution_id, absl::Time arrived) const;
  absl::StatusOr<ExecutionRequest> MakeRequest(const Incoming& incoming);
  bool MayWait(const absl::Status& refusal) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Execution> Find(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  void Ready(uint64_t id, const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReplyError(uint64_t id, absl::Status error, bool input_may_follow,
                  const Execution* ended = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(uint64_t id, const Execution* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abandon(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailStream(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelAll(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // `reads_ahead` is set on gRPC's threads only: the thread that handles a message also handles the
  // next ones if they arrive in time. Threads of the device have other work.
  void Advance(bool reads_ahead = false) ABSL_LOCKS_EXCLUDED(mutex_);
  Work Step(bool reads_ahead) ABSL_LOCKS_EXCLUDED(mutex_);
  Work TakeWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartNextWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<absl::Status> EndOfStream() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::CallbackServerContext& context_;
  Executor& executor_;
  OpenCalls& open_calls_;
  DeadlineTimer& timer_;
  const ExecuteStreamOptions options_;
  const RequestOrigin origin_;
  const absl::Time opened_at_ = absl::Now();
  std::atomic<uint64_t> begins_ = 0;  // begins received

  grpc::ByteBuffer message_;  // of the handling thread
  // Of the handling thread; any thread may read it while handling_ is false.
  std::optional<Incoming> waiting_;
  absl::Time waiting_since_;   // of the handling thread
  grpc::ByteBuffer outgoing_;  // of the write in flight

  absl::Mutex mutex_;
  grpc::ByteBuffer incoming_ ABSL_GUARDED_BY(mutex_);  // owned by gRPC during a read
  absl::flat_hash_map<uint64_t, std::shared_ptr<Execution>> open_ ABSL_GUARDED_BY(mutex_);
  // Executions whose id has been reused, until their end has been queued: another thread may be
  // about to report it.
  std::vector<std::shared_ptr<Execution>> displaced_ ABSL_GUARDED_BY(mutex_);
  // Ids of executions that ended before their input was complete. Later messages for them are not
  // the caller's mistake. The oldest ids are dropped first.
  absl::flat_hash_set<uint64_t> abandoned_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> abandoned_order_ ABSL_GUARDED_BY(mutex_);
  std::deque<Reply> replies_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_errors_ ABSL_GUARDED_BY(mutex_) = 0;  // of the replies
  // The execution whose last message is in flight.
  std::shared_ptr<Execution> last_written_ ABSL_GUARDED_BY(mutex_);
  Read read_ ABSL_GUARDED_BY(mutex_) = Read::kNone;
  bool handling_ ABSL_GUARDED_BY(mutex_) = false;
  bool retry_ ABSL_GUARDED_BY(mutex_) = false;        // there may be room for the waiting begin
  bool wakes_later_ ABSL_GUARDED_BY(mutex_) = false;  // the timer is set
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time written_at_ ABSL_GUARDED_BY(mutex_);  // the start of the write in flight
  // When a waiting begin last got its room.
  absl::Time waited_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> failure_ ABSL_GUARDED_BY(mutex_);  // of the stream as a whole
  std::shared_ptr<ExecuteStreamCall> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_
