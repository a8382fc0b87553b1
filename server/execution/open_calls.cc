#include "server/execution/open_calls.h"

namespace opmill {

void OpenCalls::Add(Call& call) {
  const std::lock_guard lock(mutex_);
  calls_.insert(&call);
  if (call.is_stream()) ++streams_;
  if (draining_) call.Drain();
}

void OpenCalls::Remove(Call& call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(&call);
  if (call.is_stream()) --streams_;
  if (calls_.empty()) none_.notify_all();
}

void OpenCalls::DrainAll() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (Call* call : calls_) call->Drain();
}

void OpenCalls::AbortAll(const absl::Status& why) {
  const std::lock_guard lock(mutex_);
  for (Call* call : calls_) call->Abort(why);
}

void OpenCalls::EndStalled(absl::Time now, absl::Duration timeout) {
  const std::lock_guard lock(mutex_);
  for (Call* call : calls_) call->EndIfStalled(now, timeout);
}

bool OpenCalls::WaitUntilNone(absl::Time deadline) {
  std::unique_lock lock(mutex_);
  return none_.wait_until(lock, absl::ToChronoTime(deadline), [this] { return calls_.empty(); });
}

}  // namespace opmill
