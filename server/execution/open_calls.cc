#include "server/execution/open_calls.h"

namespace opmill {

void OpenCalls::Add(Call& call) {
  const absl::MutexLock lock(&mutex_);
  calls_.insert(&call);
  if (call.is_stream()) ++streams_;
  if (draining_) call.Drain();
}

void OpenCalls::Remove(Call& call) {
  const absl::MutexLock lock(&mutex_);
  calls_.erase(&call);
  if (calls_.empty()) removed_.SignalAll();
  if (call.is_stream()) --streams_;
}

void OpenCalls::DrainAll() {
  const absl::MutexLock lock(&mutex_);
  draining_ = true;
  for (Call* call : calls_) call->Drain();
}

void OpenCalls::AbortAll(const absl::Status& why) {
  const absl::MutexLock lock(&mutex_);
  for (Call* call : calls_) call->Abort(why);
}

void OpenCalls::EndStalled(absl::Time now, absl::Duration timeout) {
  const absl::MutexLock lock(&mutex_);
  for (Call* call : calls_) call->EndIfStalled(now, timeout);
}

void OpenCalls::EndUnread(absl::Time now, const MayEnd& may_end) {
  const absl::MutexLock lock(&mutex_);
  for (Call* call : calls_) call->EndIfUnread(now, may_end);
}

bool OpenCalls::WaitUntilNone(absl::Time deadline) {
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); };
  const absl::MutexLock lock(&mutex_);
  return removed_.Await(&mutex_, none, deadline);
}

}  // namespace opmill
