// What an ExecuteStream call does next: a state machine without threads, locks, clock or transport.
// The call tells it what has happened, and does what it answers.
#ifndef OPMILL_SERVER_API_STREAM_STATE_H_
#define OPMILL_SERVER_API_STREAM_STATE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/result_position.h"

namespace opmill {

class Execution;

// The refusal of a begin on a stream that has as many executions as it may have.
absl::Status StreamIsFull(uint32_t max_executions);

// Not thread-safe. Executions are opaque handles.
//
// One message is handled at a time. At most one read and one write are in flight. The messages of
// executions that have results alternate.
//
// A begin without room waits, together with everything behind it, while executions of this stream
// are being computed or streamed, and for kPatience after that. Then it is refused. A caller that
// begins executions faster than the server completes them is therefore slowed down, not refused. A
// begin whose program has yet to be made waits in the same way, as long as that takes.
//
// The stream ends, when no write is in flight and no message is being handled,
// - with its error, after Fail;
// - with OK, after the half-close, when every execution has ended and every end has been written;
// - with Unavailable, after Drain, when that is so and no message waits.
class StreamState {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(2);
  static constexpr absl::Duration kRetryInterval = absl::Milliseconds(20);
  static constexpr size_t kMaxWaitingErrors = 1024;  // then reading stops until the caller reads
  static constexpr size_t kMaxAbandoned = 4096;

  using Executions = std::vector<std::shared_ptr<Execution>>;

  // What waits to be written: results, or the end of an execution that failed.
  struct Reply {
    uint64_t id = 0;
    std::shared_ptr<Execution> execution;  // null for an error
    ResultPosition position;               // of the next message
    absl::Status error;
  };

  enum class Work {
    kNone,
    kMessage,       // handle the message that was read
    kWaitingBegin,  // try the waiting begin again
    kHalfClose,     // end the executions that lack input
  };

  // To be started in this order, before the next event is reported. Other events may come while the
  // work is in progress.
  struct Actions {
    std::optional<Reply> write;          // then WriteStarted
    std::optional<absl::Status> finish;  // then there is nothing else to do
    Work work = Work::kNone;  // then MessageHandled, MessageWaits..., or HalfCloseHandled
    bool read = false;        // then ReadDone
  };

  explicit StreamState(uint32_t max_executions) : max_executions_(max_executions) {}

  // What to do now, after any event. `reads_ahead`: the next message is read while one is being
  // handled.
  Actions Advance(bool reads_ahead);

  // `ok` is false for the half-close.
  void ReadDone(bool ok);

  enum class Written {
    kMore,   // a message of results, not the last
    kLast,   // the last
    kError,  // an error, possibly instead of results that are gone
  };
  void WriteStarted(Reply reply, Written written, absl::Time now);
  bool has_replies() const { return !replies_.empty(); }  // without the one in flight
  // Returns the execution whose last message it was; null for other messages.
  std::shared_ptr<Execution> WriteDone();

  // Ends the stream with the first error that it is given. Returns the executions to cancel.
  Executions Fail(const absl::Status& why);
  void Drain() { draining_ = true; }
  // To be called after the finish. Releases everything; returns the executions to cancel.
  Executions Close();

  // While a message is handled: the execution that has this id, or null.
  std::shared_ptr<Execution> Find(uint64_t id) const;
  // Whether input may still come for an execution of this id that has ended early.
  bool IsAbandoned(uint64_t id) const { return abandoned_.Contains(id); }
  // Whether there is room for an execution of this id, which must not be open. From then on the id
  // is not abandoned.
  enum class Room { kFree, kFull, kStreamEnds };
  Room RoomFor(uint64_t id);
  // Whether a begin that was refused for lack of room should wait. `progresses`: an execution of
  // the stream has all its input.
  bool MayWait(bool progresses, absl::Time now);
  // `has_ended`: on another thread, so that Ended has come or will come. False: the stream ends,
  // and the execution is to be cancelled.
  bool Begun(uint64_t id, const std::shared_ptr<Execution>& execution, bool has_ended);
  // A begin has named the id of this execution, which has been cancelled.
  void BegunAgain(uint64_t id, const std::shared_ptr<Execution>& execution);
  // The message did not lead to an execution.
  void Refused(uint64_t id, absl::Status error, bool input_may_follow);

  void MessageHandled(absl::Time now);
  // The message's begin waits. Returns true if RetryLater must be called after kRetryInterval.
  bool MessageWaits();
  // The message's begin waits for ProgramMade, which may have come already.
  void MessageWaitsForProgram();
  void ProgramMade() { program_is_made_ = true; }
  void RetryLater();
  void HalfCloseHandled();

  // On any thread: an execution has results, or has ended without any.
  void Ready(uint64_t id, const std::shared_ptr<Execution>& execution);
  void Ended(uint64_t id, const Execution& execution, absl::Status error, bool input_may_follow);

  Executions open() const;
  enum class Stall {
    kNone,
    kInput,   // the caller may send but does not; executions that lacked input for so long end
    kReader,  // the caller does not read
  };
  Stall StalledFor(absl::Duration timeout, absl::Time now) const;
  // Whether the write in flight has taken so long.
  bool IsUnread(absl::Duration timeout, absl::Time now) const {
    return writing_ && now - written_at_ >= timeout;
  }

 private:
  enum class Read {
    kNone,        // not requested: errors wait to be written, or a message is being handled
    kStarted,     // the transport reads
    kArrived,     // a message has arrived and is not being handled yet
    kHalfClosed,  // no more will come; executions that lack input have not been ended
    kEnded,
  };

  // The newest ids.
  class RecentIds {
   public:
    bool Contains(uint64_t id) const { return places_.contains(id); }
    void Insert(uint64_t id);
    void Erase(uint64_t id);

   private:
    std::list<uint64_t> order_;  // the oldest first
    absl::flat_hash_map<uint64_t, std::list<uint64_t>::iterator> places_;
  };

  bool is_over() const { return finished_ || failure_.has_value(); }
  std::optional<Reply> TakeReply();
  std::optional<absl::Status> EndOfStream() const;
  Work TakeWork();
  bool Forget(uint64_t id, const Execution& execution);
  void AddError(uint64_t id, absl::Status error, bool input_may_follow);

  const uint32_t max_executions_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Execution>> open_;
  // Have ended, but Ended has not been called: another thread may be about to call it.
  Executions displaced_;
  // Its Ended came before its Begun.
  const Execution* ended_before_begun_ = nullptr;
  // Ids whose executions ended before their input was complete: input that still comes for them is
  // not an error.
  RecentIds abandoned_;

  Read read_ = Read::kNone;
  bool handling_ = false;
  bool begin_waits_ = false;
  absl::Time waiting_since_;                        // kPatience counts from here
  absl::Time waited_until_ = absl::InfinitePast();  // when a begin last got the room it waited for
  bool retry_ = false;                              // there may be room for the waiting begin
  bool retries_later_ = false;                      // RetryLater will come
  bool awaits_program_ = false;                     // the begin does
  bool program_is_made_ = false;                    // of the begin
  bool waited_for_program_ = false;                 // the message that is handled

  std::deque<Reply> replies_;
  size_t waiting_errors_ = 0;  // of the replies
  bool writing_ = false;
  absl::Time written_at_;                    // the start of the write in flight
  std::shared_ptr<Execution> last_written_;  // whose last message is in flight

  bool draining_ = false;
  bool finished_ = false;
  std::optional<absl::Status> failure_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_STREAM_STATE_H_
