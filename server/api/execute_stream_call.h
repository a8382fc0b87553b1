// One ExecuteStream call: many executions at a time, each with its own end.
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
  // The reactor to give to gRPC.
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
  static constexpr size_t kMaxWaitingErrors = 1024;  // more, and reading waits for the caller's own
  static constexpr size_t kMaxAbandoned = 4096;

  // What waits to be written: a result, or the end of an execution that failed.
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
    kNone,        // not asked for: errors wait to be written
    kStarted,     // gRPC has incoming_
    kArrived,     // incoming_ holds a message that nobody has taken yet
    kHalfClosed,  // no more will come, and what is incomplete has not been told
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

  // `reads_ahead` on gRPC's threads alone: who handles a message then handles the next ones too, as
  // long as they come in time, and the device's threads have other work.
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
  std::atomic<uint64_t> begins_ = 0;  // that have come

  grpc::ByteBuffer message_;         // of who handles
  std::optional<Incoming> waiting_;  // of who handles, and readable while nobody does
  absl::Time waiting_since_;         // of who handles
  grpc::ByteBuffer outgoing_;        // of the write in flight

  absl::Mutex mutex_;
  grpc::ByteBuffer incoming_ ABSL_GUARDED_BY(mutex_);  // gRPC's own while a read is in flight
  absl::flat_hash_map<uint64_t, std::shared_ptr<Execution>> open_ ABSL_GUARDED_BY(mutex_);
  // Whose id has been begun again, until their end is on its way: another thread may be about to
  // tell of it.
  std::vector<std::shared_ptr<Execution>> displaced_ ABSL_GUARDED_BY(mutex_);
  // Ids whose executions ended before their input was complete: what still comes for them is no
  // mistake of the caller's. The oldest go first.
  absl::flat_hash_set<uint64_t> abandoned_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> abandoned_order_ ABSL_GUARDED_BY(mutex_);
  std::deque<Reply> replies_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_errors_ ABSL_GUARDED_BY(mutex_) = 0;  // of the replies
  // Whose last message is in flight.
  std::shared_ptr<Execution> last_written_ ABSL_GUARDED_BY(mutex_);
  Read read_ ABSL_GUARDED_BY(mutex_) = Read::kNone;
  bool handling_ ABSL_GUARDED_BY(mutex_) = false;
  bool retry_ ABSL_GUARDED_BY(mutex_) = false;        // there may be room for what waits
  bool wakes_later_ ABSL_GUARDED_BY(mutex_) = false;  // the timer will say so
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time written_at_ ABSL_GUARDED_BY(mutex_);  // the start of the write in flight
  // When a begin last got the room it waited for.
  absl::Time waited_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> failure_ ABSL_GUARDED_BY(mutex_);  // of the stream as a whole
  std::shared_ptr<ExecuteStreamCall> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_
