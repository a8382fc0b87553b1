#include "server/execution/worker_pool.h"

#include <utility>

namespace opmill {

WorkerPool::WorkerPool(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkerPool::PostPatient(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    patient_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkerPool::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !posted_.empty() || !patient_.empty(); });
    std::deque<std::function<void()>>& queue = posted_.empty() ? patient_ : posted_;
    if (queue.empty()) return;
    std::function<void()> work = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace opmill
