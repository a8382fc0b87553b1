#include "server/oip/infer_stream_state.h"

#include <utility>

#include "server/execution/admission.h"

namespace opmill::oip {

InferStreamState::Actions InferStreamState::Advance(absl::Time now) {
  Actions actions;
  if (finished_) return actions;
  actions.finish = EndOfStream();
  if (actions.finish.has_value()) {
    finished_ = true;
    return actions;
  }
  if (failure_.has_value()) return actions;
  if (!writing_ && !unanswered_.empty() && unanswered_.front().is_ready) {
    actions.write = std::move(unanswered_.front().answer);
    unanswered_.pop_front();
    writing_ = true;
    written_ = actions.write->execution;
    written_at_ = now;
  }
  if (read_ == Read::kNone && unanswered_.size() < max_requests_) {
    read_ = Read::kStarted;
    actions.read = true;
  }
  return actions;
}

std::optional<absl::Status> InferStreamState::EndOfStream() const {
  if (writing_ || read_ == Read::kHandling) return std::nullopt;
  if (failure_.has_value()) return failure_;
  if (!unanswered_.empty()) return std::nullopt;
  if (read_ == Read::kHalfClosed) return absl::OkStatus();
  if (draining_) return Draining();
  return std::nullopt;
}

std::optional<uint64_t> InferStreamState::RequestRead(std::shared_ptr<InferRequest> request) {
  if (is_over()) return std::nullopt;
  read_ = Read::kHandling;
  unanswered_.push_back({.answer = {.request = std::move(request)}});
  return ++requests_;
}

InferStreamState::Entry* InferStreamState::Find(uint64_t number) {
  const uint64_t answered = requests_ - unanswered_.size();
  return number > answered ? &unanswered_[number - answered - 1] : nullptr;
}

absl::Status InferStreamState::Begun(uint64_t number, const std::shared_ptr<Execution>& execution) {
  if (Entry* const entry = Find(number)) entry->answer.execution = execution;
  return failure_.value_or(absl::OkStatus());
}

void InferStreamState::Ready(uint64_t number, std::shared_ptr<Execution> execution,
                             absl::Status error) {
  Entry* const entry = Find(number);
  if (entry == nullptr) return;  // the call is closed
  entry->answer.execution = std::move(execution);
  entry->answer.error = std::move(error);
  entry->is_ready = true;
}

std::shared_ptr<Execution> InferStreamState::WriteDone() {
  writing_ = false;
  return std::exchange(written_, nullptr);
}

InferStreamState::Executions InferStreamState::Fail(const absl::Status& why) {
  if (!failure_.has_value()) failure_ = why;
  Executions executions;
  for (const Entry& entry : unanswered_) {
    if (entry.answer.execution != nullptr) executions.push_back(entry.answer.execution);
  }
  if (written_ != nullptr) executions.push_back(written_);
  return executions;
}

InferStreamState::Executions InferStreamState::Close() {
  Executions executions = Fail(absl::CancelledError("The call is done."));
  unanswered_.clear();
  written_ = nullptr;
  return executions;
}

bool InferStreamState::IsUnread(absl::Duration timeout, absl::Time now) const {
  return writing_ && now - written_at_ >= timeout;
}

}  // namespace opmill::oip
