#include "server/api/stream_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/status/retry_delay.h"

namespace opmill {

absl::Status StreamIsFull(uint32_t max_executions) {
  return WithRetryDelay(
      absl::ResourceExhaustedError(absl::StrCat("The stream has ", max_executions,
                                                " executions (max_executions_per_stream) under "
                                                "way.")),
      absl::Milliseconds(500));
}

StreamState::Actions StreamState::Advance(bool reads_ahead) {
  Actions actions;
  if (finished_) return actions;
  actions.write = TakeReply();
  if (!actions.write.has_value()) actions.finish = EndOfStream();
  if (actions.finish.has_value()) {
    finished_ = true;
    return actions;
  }
  if (failure_.has_value()) return actions;
  if (!handling_) {
    actions.work = TakeWork();
    handling_ = actions.work != Work::kNone;
  }
  if (read_ == Read::kNone && waiting_errors_ < kMaxWaitingErrors && (!handling_ || reads_ahead)) {
    read_ = Read::kStarted;
    actions.read = true;
  }
  return actions;
}

std::optional<StreamState::Reply> StreamState::TakeReply() {
  if (writing_ || failure_.has_value() || replies_.empty()) return std::nullopt;
  std::optional<Reply> reply(std::move(replies_.front()));
  replies_.pop_front();
  if (reply->execution == nullptr) --waiting_errors_;
  writing_ = true;
  return reply;
}

std::optional<absl::Status> StreamState::EndOfStream() const {
  // While a message is being handled, maybe on a thread that the transport does not know, the call
  // must not end.
  if (writing_ || handling_) return std::nullopt;
  if (failure_.has_value()) return failure_;
  if (!open_.empty() || !displaced_.empty()) return std::nullopt;
  if (read_ == Read::kEnded) return absl::OkStatus();
  const bool has_more =
      begin_waits_ || awaits_program_ || read_ == Read::kArrived || read_ == Read::kHalfClosed;
  if (!draining_ || has_more) return std::nullopt;
  return absl::UnavailableError("The server is draining, and the stream has nothing under way.");
}

StreamState::Work StreamState::TakeWork() {
  if (awaits_program_) {
    if (!std::exchange(program_is_made_, false)) return Work::kNone;
    awaits_program_ = false;
    return Work::kWaitingBegin;
  }
  if (begin_waits_) return std::exchange(retry_, false) ? Work::kWaitingBegin : Work::kNone;
  if (read_ == Read::kHalfClosed) return Work::kHalfClose;
  if (read_ != Read::kArrived || waiting_errors_ >= kMaxWaitingErrors) return Work::kNone;
  read_ = Read::kNone;
  return Work::kMessage;
}

void StreamState::ReadDone(bool ok) { read_ = ok ? Read::kArrived : Read::kHalfClosed; }

void StreamState::WriteStarted(Reply reply, Written written, absl::Time now) {
  written_at_ = now;
  if (written == Written::kMore) {
    replies_.push_back(std::move(reply));  // after the others
    return;
  }
  if (reply.execution == nullptr) return;
  Forget(reply.id, *reply.execution);
  if (written == Written::kLast) last_written_ = std::move(reply.execution);
}

std::shared_ptr<Execution> StreamState::WriteDone() {
  writing_ = false;
  retry_ = true;
  return std::exchange(last_written_, nullptr);
}

StreamState::Executions StreamState::Fail(const absl::Status& why) {
  if (!failure_.has_value()) failure_ = why;
  return open();
}

StreamState::Executions StreamState::Close() {
  Executions open = this->open();
  open_.clear();
  displaced_.clear();
  replies_.clear();
  return open;
}

std::shared_ptr<Execution> StreamState::Find(uint64_t id) const {
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : found->second;
}

StreamState::Room StreamState::RoomFor(uint64_t id) {
  abandoned_.Erase(id);
  ended_before_begun_ = nullptr;
  if (is_over()) return Room::kStreamEnds;
  return open_.size() < max_executions_ ? Room::kFree : Room::kFull;
}

bool StreamState::MayWait(bool progresses, absl::Time now) {
  if (is_over()) return false;
  if (!begin_waits_ || progresses) waiting_since_ = now;
  return now - waiting_since_ < kPatience;
}

bool StreamState::Begun(uint64_t id, const std::shared_ptr<Execution>& execution, bool has_ended) {
  if (has_ended) {
    if (ended_before_begun_ != execution.get()) displaced_.push_back(execution);
    abandoned_.Insert(id);
  } else if (!is_over()) {
    open_[id] = execution;
  }
  return !is_over();
}

void StreamState::BegunAgain(uint64_t id, const std::shared_ptr<Execution>& execution) {
  // Unless its end came with the cancellation.
  if (Forget(id, *execution)) displaced_.push_back(execution);
  abandoned_.Insert(id);
}

void StreamState::Refused(uint64_t id, absl::Status error, bool input_may_follow) {
  if (!finished_) AddError(id, std::move(error), input_may_follow);
}

void StreamState::MessageHandled(absl::Time now) {
  handling_ = false;
  const bool waited = std::exchange(begin_waits_, false);
  if (std::exchange(waited_for_program_, false) || waited) waited_until_ = now;
}

bool StreamState::MessageWaits() {
  handling_ = false;
  begin_waits_ = true;
  return !std::exchange(retries_later_, true);
}

void StreamState::MessageWaitsForProgram() {
  handling_ = false;
  awaits_program_ = true;
  waited_for_program_ = true;
}

void StreamState::RetryLater() {
  retries_later_ = false;
  retry_ = true;
}

void StreamState::HalfCloseHandled() {
  read_ = Read::kEnded;
  handling_ = false;
}

void StreamState::Ready(uint64_t id, const std::shared_ptr<Execution>& execution) {
  if (!finished_) replies_.push_back({.id = id, .execution = execution});
}

void StreamState::Ended(uint64_t id, const Execution& execution, absl::Status error,
                        bool input_may_follow) {
  if (!Forget(id, execution)) ended_before_begun_ = &execution;
  if (!finished_) AddError(id, std::move(error), input_may_follow);
}

void StreamState::AddError(uint64_t id, absl::Status error, bool input_may_follow) {
  retry_ = true;
  replies_.push_back({.id = id, .error = std::move(error)});
  ++waiting_errors_;
  if (input_may_follow) abandoned_.Insert(id);
}

// The id may be another's by now, if the caller has begun it twice.
bool StreamState::Forget(uint64_t id, const Execution& execution) {
  const auto found = open_.find(id);
  if (found != open_.end() && found->second.get() == &execution) {
    open_.erase(found);
    return true;
  }
  return std::erase_if(displaced_, [&](const auto& each) { return each.get() == &execution; }) > 0;
}

StreamState::Executions StreamState::open() const {
  Executions executions;
  executions.reserve(open_.size());
  for (const auto& [id, execution] : open_) executions.push_back(execution);
  return executions;
}

StreamState::Stall StreamState::StalledFor(absl::Duration timeout, absl::Time now) const {
  if (IsUnread(timeout, now)) return Stall::kReader;
  if (is_over()) return Stall::kNone;
  // While a begin waits, or errors are not read, it is the server that does not take the input.
  const bool may_send = read_ == Read::kStarted && !handling_ && !begin_waits_ && !awaits_program_;
  return may_send && now - waited_until_ >= timeout ? Stall::kInput : Stall::kNone;
}

void StreamState::RecentIds::Insert(uint64_t id) {
  if (Contains(id)) return;
  places_[id] = order_.insert(order_.end(), id);
  if (places_.size() > kMaxAbandoned) Erase(order_.front());
}

void StreamState::RecentIds::Erase(uint64_t id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  order_.erase(found->second);
  places_.erase(found);
}

}  // namespace opmill
