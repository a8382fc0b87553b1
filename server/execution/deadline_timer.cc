#include "server/execution/deadline_timer.h"

#include "absl/time/clock.h"

namespace opmill {

DeadlineTimer::~DeadlineTimer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

DeadlineTimer::Handle DeadlineTimer::Add(absl::Time when, std::function<void()> callback) {
  if (when == absl::InfiniteFuture()) return kNone;
  const std::lock_guard lock(mutex_);
  const Handle handle(when, ++last_);
  const auto added = waiting_.emplace(handle, std::move(callback)).first;
  if (added == waiting_.begin()) changed_.notify_one();
  return handle;
}

void DeadlineTimer::Remove(Handle handle) {
  if (handle == kNone) return;
  std::function<void()> removed;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(handle);
  if (found == waiting_.end()) return;
  removed = std::move(found->second);
  waiting_.erase(found);
}

void DeadlineTimer::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = waiting_.begin();
    if (first->first.first > absl::Now()) {
      changed_.wait_until(lock, absl::ToChronoTime(first->first.first));
      continue;
    }
    std::function<void()> callback = std::move(first->second);
    waiting_.erase(first);
    lock.unlock();
    callback();
    callback = nullptr;
    lock.lock();
  }
}

}  // namespace opmill
