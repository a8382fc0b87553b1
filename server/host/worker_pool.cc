#include "server/host/worker_pool.h"

#include <algorithm>

namespace opmill {

WorkerPool::WorkerPool(uint32_t threads) : most_long_(std::max(1u, threads - 1)) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Add(Queue& queue, Work work) {
  work.number = ++last_;
  queue.push_back(std::move(work));
}

void WorkerPool::PostCancellable(Queue WorkerPool::*queue, std::function<void()> work,
                                 const std::stop_token& cancelled) {
  const auto cancel = cancelled.stop_possible() ? std::make_shared<Cancel>() : nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    Add(this->*queue, {.run = std::move(work), .cancel = cancel});
  }
  // Without the lock: it may be called at once.
  if (cancel != nullptr) cancel->emplace(cancelled, [this, of = cancel.get()] { Hurry(of); });
}

void WorkerPool::Hurry(const Cancel* cancel) {
  const absl::MutexLock lock(&mutex_);
  for (Queue* const queue : {&long_, &low_priority_}) {
    const auto at = std::find_if(queue->begin(), queue->end(),
                                 [&](const Work& work) { return work.cancel.get() == cancel; });
    if (at == queue->end()) continue;
    Add(posted_, std::move(*at));
    queue->erase(at);
    return;
  }
}

void WorkerPool::Run() {
  while (RunNext()) {
  }
}

WorkerPool::Queue* WorkerPool::FindDue() {
  Queue* due = posted_.empty() ? nullptr : &posted_;
  if (!MayBeginLong()) return due;
  const bool is_long_first =
      !long_.empty() && (due == nullptr || long_.front().number < posted_.front().number);
  if (is_long_first) due = &long_;
  const bool is_low_due = due == nullptr || ahead_ >= kMostAhead;
  return is_low_due && !low_priority_.empty() ? &low_priority_ : due;
}

bool WorkerPool::RunNext() {
  Work work;
  bool is_long = false;
  {
    const auto changed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || FindDue() != nullptr;
    };
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&changed));
    Queue* const queue = FindDue();
    if (queue == nullptr) return false;
    if (low_priority_.empty() || queue == &low_priority_) {
      ahead_ = 0;
    } else if (MayBeginLong()) {  // otherwise work of low priority could not have begun
      ++ahead_;
    }
    is_long = queue != &posted_;
    if (is_long) ++long_now_;
    work = std::move(queue->front());
    queue->pop_front();
  }
  work.run();
  if (is_long) {
    const absl::MutexLock lock(&mutex_);
    --long_now_;
  }
  return true;
}

}  // namespace opmill
