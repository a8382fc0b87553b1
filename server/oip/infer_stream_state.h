// What a ModelStreamInfer call does next: a state machine without threads, locks, clock or
// transport. The call tells it what has happened, and does what it answers.
#ifndef OPMILL_SERVER_OIP_INFER_STREAM_STATE_H_
#define OPMILL_SERVER_OIP_INFER_STREAM_STATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace opmill {
class Execution;
}  // namespace opmill

namespace opmill::oip {

class InferRequest;

// Not thread-safe. Requests and executions are opaque handles.
//
// One request is handled at a time, and requests are computed concurrently. Answers are written in
// the order of the requests. At most one read and one write are in flight. While `max_requests`
// requests wait for their answer, the stream is not read.
//
// The stream ends, when no write is in flight and no request is being handled,
// - with its error, after Fail;
// - with OK, after the half-close, when every answer has been written;
// - with Unavailable, after Drain, when every answer has been written.
class InferStreamState {
 public:
  using Executions = std::vector<std::shared_ptr<Execution>>;

  struct Answer {
    std::shared_ptr<InferRequest> request;
    std::shared_ptr<Execution> execution;  // null if the request was refused
    absl::Status error;                    // OK if the execution has results
  };

  // To be started before the next event is reported.
  struct Actions {
    std::optional<Answer> write;         // then WriteDone
    std::optional<absl::Status> finish;  // then there is nothing else to do
    bool read = false;                   // then RequestRead or HalfClosed
  };

  explicit InferStreamState(uint32_t max_requests) : max_requests_(max_requests) {}

  // What to do now, after any event.
  Actions Advance(absl::Time now);

  // A request has arrived and is handled now. Returns its number; requests are numbered from 1. No
  // number: the stream ends, and the request is not handled.
  std::optional<uint64_t> RequestRead(std::shared_ptr<InferRequest> request);
  // The request has been begun or refused.
  void RequestHandled() { read_ = Read::kNone; }
  void HalfClosed() { read_ = Read::kHalfClosed; }

  // Returns an error if the stream ends; the execution is to be cancelled with it.
  absl::Status Begun(uint64_t number, const std::shared_ptr<Execution>& execution);
  // The execution has results or has failed. Without an execution, the request was refused. May be
  // reported by any thread, and before Begun.
  void Ready(uint64_t number, std::shared_ptr<Execution> execution, absl::Status error);
  // Returns the execution that was answered, or null.
  std::shared_ptr<Execution> WriteDone();

  // Ends the stream with the first error that it is given. Returns the executions to cancel.
  Executions Fail(const absl::Status& why);
  void Drain() { draining_ = true; }
  // To be called after the finish. Releases everything; returns the executions to cancel.
  Executions Close();

  uint64_t requests() const { return requests_; }  // so far
  // Whether the caller has not read an answer for `timeout`.
  bool IsUnread(absl::Duration timeout, absl::Time now) const;

 private:
  enum class Read { kNone, kStarted, kHandling, kHalfClosed };
  struct Entry {
    Answer answer;
    bool is_ready = false;
  };

  bool is_over() const { return finished_ || failure_.has_value(); }
  std::optional<absl::Status> EndOfStream() const;
  Entry* Find(uint64_t number);  // null if it has been answered

  const uint32_t max_requests_;
  uint64_t requests_ = 0;
  std::deque<Entry> unanswered_;  // the latest requests, in their order
  Read read_ = Read::kNone;

  bool writing_ = false;
  std::shared_ptr<Execution> written_;  // of the write in flight
  absl::Time written_at_;               // the start of that write

  bool draining_ = false;
  bool finished_ = false;
  std::optional<absl::Status> failure_;
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_INFER_STREAM_STATE_H_
