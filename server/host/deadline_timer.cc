#include "server/host/deadline_timer.h"

namespace opmill {

DeadlineTimer::~DeadlineTimer() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  thread_.join();
}

DeadlineTimer::Handle DeadlineTimer::Add(absl::Time when, std::function<void()> callback) {
  if (when == absl::InfiniteFuture()) return kNone;
  const absl::MutexLock lock(&mutex_);
  const Handle handle(when, ++last_);
  const auto added = waiting_.emplace(handle, std::move(callback)).first;
  if (added == waiting_.begin()) changed_.SignalAll();
  return handle;
}

void DeadlineTimer::Remove(Handle handle) {
  if (handle == kNone) return;
  std::function<void()> removed;  // destroyed outside the lock
  const absl::MutexLock lock(&mutex_);
  const auto found = waiting_.find(handle);
  if (found == waiting_.end()) return;
  removed = std::move(found->second);
  waiting_.erase(found);
}

void DeadlineTimer::Run() {
  while (const std::function<void()> callback = Next()) callback();
}

std::function<void()> DeadlineTimer::Next() {
  const absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    const auto first = waiting_.begin();
    const absl::Time when = first == waiting_.end() ? absl::InfiniteFuture() : first->first.first;
    if (when > SteadyNow()) {
      changed_.WaitUntil(&mutex_, when);
      continue;
    }
    std::function<void()> callback = std::move(first->second);
    waiting_.erase(first);
    return callback;
  }
  return nullptr;
}

}  // namespace opmill
