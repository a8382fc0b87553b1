#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "hwy/cache_control.h"

namespace opmill {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread looks for the next phase of its job before it sleeps: waking it takes as long
// as many a phase.
constexpr std::chrono::microseconds kShortWait{100};
// How often a busy thread yields. A thread that waits for a processor, such as one that receives a
// small call, would otherwise wait until the end of this thread's time slice, 4 ms on Linux.
constexpr std::chrono::microseconds kBusyTime{1000};

}  // namespace

// Sequentially consistent, like the count of sleeping threads: either the thread that opens a phase
// sees that another one sleeps, or that one sees the tasks.
void PoolJob::Open(uint64_t count) {
  for (size_t i = 0; i < shares_.size(); ++i) {
    shares_[i].next = count * i / shares_.size();
    shares_[i].end = count * (i + 1) / shares_.size();
  }
  unfinished_ = count;
  unclaimed_ = count;
}

std::optional<uint64_t> PoolJob::Claim(size_t thread) {
  uint64_t left = unclaimed_;
  do {
    if (left == 0) return std::nullopt;
  } while (!unclaimed_.compare_exchange_weak(left, left - 1));
  // This thread now owns one unclaimed task, and looks for it, in its own share first.
  for (size_t i = thread;; i = (i + 1) % shares_.size()) {
    Share& share = shares_[i];
    if (share.next >= share.end) continue;
    if (const uint64_t task = share.next++; task < share.end) return task;
  }
}

ThreadPool::ThreadPool(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { Work(i); });
}

ThreadPool::~ThreadPool() {
  {
    const absl::MutexLock lock(&mutex_);
    closing_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Post(Job job) {
  const uint64_t count = job->NextPhase();
  if (count == 0) return;
  job->shares_ = std::vector<PoolJob::Share>(threads_.size());
  job->Open(count);
  {
    const absl::MutexLock lock(&mutex_);
    jobs_.push_back(std::move(job));
    job_count_ = jobs_.size();
  }
  Wake(count);
}

void ThreadPool::RunHere(PoolJob& job) {
  while (const uint64_t count = job.NextPhase()) {
    for (uint64_t task = 0; task < count; ++task) job.RunTask(task);
  }
}

void ThreadPool::Work(size_t thread) {
  while (const Job job = NextJob()) {
    do {
      RunTasks(job, thread);
    } while (WaitsShortlyFor(*job));
  }
}

// Until none is left, or another job may be next.
void ThreadPool::RunTasks(const Job& job, size_t thread) {
  Clock::time_point yielded = Clock::now();
  while (const std::optional<uint64_t> task = job->Claim(thread)) {
    job->RunTask(*task);
    if (--job->unfinished_ == 0) {
      const uint64_t count = job->NextPhase();
      if (count == 0) {
        job->has_ended_ = true;
        const absl::MutexLock lock(&mutex_);
        std::erase(jobs_, job);
        job_count_ = jobs_.size();
        if (closing_) changed_.SignalAll();
        return;
      }
      job->Open(count);
      if (sleeping_ > 0 || job_count_ > 1) {
        {
          const absl::MutexLock lock(&mutex_);
          // Others may have ended the job since then.
          const auto found = std::find(jobs_.begin(), jobs_.end(), job);
          if (found != jobs_.end()) std::rotate(jobs_.begin(), found, found + 1);
        }
        Wake(count - 1);
      }
    }
    if (const Clock::time_point now = Clock::now(); now - yielded > kBusyTime) {
      std::this_thread::yield();
      yielded = now;
    }
    if (job_count_ > 1) return;
  }
}

// Whether the job, which is the only one, has tasks again.
bool ThreadPool::WaitsShortlyFor(const PoolJob& job) const {
  const Clock::time_point end = Clock::now() + kShortWait;
  do {
    if (job_count_ != 1 || job.has_ended_) return false;
    if (job.unclaimed_ > 0) return true;
    hwy::Pause();  // a thread that yields may get its processor back milliseconds later
  } while (Clock::now() < end);
  return false;
}

ThreadPool::Job ThreadPool::NextJob() {
  const absl::MutexLock lock(&mutex_);
  while (true) {
    if (Job job = TakeJob()) return job;
    if (closing_ && jobs_.empty()) return nullptr;
    ++sleeping_;
    Job job = TakeJob();  // tasks that were opened before the thread was counted
    if (job == nullptr && !(closing_ && jobs_.empty())) changed_.Wait(&mutex_);
    --sleeping_;
    if (job != nullptr) return job;
  }
}

ThreadPool::Job ThreadPool::TakeJob() {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job->unclaimed_ > 0; });
  if (found == jobs_.end()) return nullptr;
  std::rotate(found, found + 1, jobs_.end());
  return jobs_.back();
}

void ThreadPool::Wake(uint64_t threads) {
  for (uint64_t i = std::min<uint64_t>(threads, sleeping_); i > 0; --i) changed_.Signal();
}

}  // namespace opmill
