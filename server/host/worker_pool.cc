#include "server/host/worker_pool.h"

#include <utility>

namespace opmill {

WorkerPool::WorkerPool(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Post(std::function<void()> work) {
  const absl::MutexLock lock(&mutex_);
  posted_.push_back(std::move(work));
}

void WorkerPool::PostLowPriority(std::function<void()> work) {
  const absl::MutexLock lock(&mutex_);
  low_priority_.push_back(std::move(work));
}

void WorkerPool::Run() {
  while (const std::function<void()> work = Next()) work();
}

std::function<void()> WorkerPool::Next() {
  const auto changed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !posted_.empty() || !low_priority_.empty();
  };
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&changed));
  const bool low_is_due = posted_.empty() || ahead_ >= kMostAhead;
  std::deque<std::function<void()>>& queue =
      low_is_due && !low_priority_.empty() ? low_priority_ : posted_;
  if (queue.empty()) return nullptr;
  ahead_ = &queue == &posted_ && !low_priority_.empty() ? ahead_ + 1 : 0;
  std::function<void()> work = std::move(queue.front());
  queue.pop_front();
  return work;
}

}  // namespace opmill
