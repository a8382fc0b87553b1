#include "kernels/cpu/thread_pool.h"

#include <utility>

namespace opmill {

ThreadPool::ThreadPool(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    const absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Post(std::shared_ptr<PoolJob> job) {
  job->count_ = job->NextPhase();
  if (job->count_ == 0) return;
  job->left_ = job->count_;
  const absl::MutexLock lock(&mutex_);
  ++open_;
  jobs_.push_back(std::move(job));
}

void ThreadPool::RunHere(PoolJob& job) {
  while (const uint64_t count = job.NextPhase()) {
    for (uint64_t task = 0; task < count; ++task) job.RunTask(task);
  }
}

void ThreadPool::Work() {
  const auto changed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !jobs_.empty() || (closing_ && open_ == 0);
  };
  while (true) {
    std::shared_ptr<PoolJob> job;
    uint64_t task = 0;
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&changed));
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      task = job->next_++;
      if (job->next_ < job->count_) jobs_.push_back(job);
    }
    job->RunTask(task);
    // A thread that waits for a processor, such as one that receives a small call, would otherwise
    // wait until the end of this thread's time slice, 4 ms on Linux, many tasks later.
    std::this_thread::yield();
    if (--job->left_ > 0) continue;
    const uint64_t count = job->NextPhase();
    const absl::MutexLock lock(&mutex_);
    if (count == 0) {
      --open_;
      continue;
    }
    job->count_ = count;
    job->next_ = 0;
    job->left_ = count;
    jobs_.push_front(std::move(job));
  }
}

}  // namespace opmill
