// The threads of the cpu device. They take tasks from all jobs in rotation.
#ifndef OPMILL_KERNELS_CPU_THREAD_POOL_H_
#define OPMILL_KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace opmill {

// A job consists of phases, and a phase of tasks, which may run concurrently on any thread.
class PoolJob {
 public:
  virtual ~PoolJob() = default;
  // Returns the number of tasks in the next phase; 0 ends the job, and is the last call. Never
  // called concurrently.
  virtual uint64_t NextPhase() = 0;
  virtual void RunTask(uint64_t task) = 0;

 private:
  friend class ThreadPool;

  // A range of adjacent tasks. Its thread takes them first, because the same part of the previous
  // phase's output is in its cache.
  struct alignas(64) Share {
    std::atomic<uint64_t> next = 0;
    uint64_t end = 0;
  };

  void Open(uint64_t count);
  std::optional<uint64_t> Claim(size_t thread);  // a task of the phase that no other thread has

  // For each thread; they change only while no task of the phase is claimed.
  std::vector<Share> shares_;
  std::atomic<uint64_t> unclaimed_ = 0;
  std::atomic<uint64_t> unfinished_ = 0;
  std::atomic<bool> has_ended_ = false;
};

// Thread-safe. A thread computes tasks of one job as long as there is no other. Otherwise it takes
// one task from the job that has waited longest, so that a long job delays a short one only by the
// tasks in progress.
class ThreadPool {
 public:
  explicit ThreadPool(uint32_t threads);
  // Finishes all jobs first. No Post may be under way, not even one whose job has ended.
  ~ThreadPool();

  void Post(std::shared_ptr<PoolJob> job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs the whole job on the calling thread.
  static void RunHere(PoolJob& job);

 private:
  using Job = std::shared_ptr<PoolJob>;

  void Work(size_t thread) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunTasks(const Job& job, size_t thread) ABSL_LOCKS_EXCLUDED(mutex_);
  bool WaitsShortlyFor(const PoolJob& job) const;
  Job NextJob() ABSL_LOCKS_EXCLUDED(mutex_);  // null: the pool closes
  Job TakeJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call without the lock, after the tasks were published under it: woken threads take it first.
  void Wake(uint64_t threads) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_);  // that have not ended, the next one first
  std::atomic<uint64_t> job_count_ = 0;           // jobs_.size()
  std::atomic<uint64_t> sleeping_ = 0;            // threads
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // declared last: they use the members above
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_THREAD_POOL_H_
