// The threads of the processor's device, which take tasks from all jobs in rotation.
#ifndef OPMILL_KERNELS_CPU_THREAD_POOL_H_
#define OPMILL_KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace opmill {

// Phases of tasks. The tasks of a phase run at the same time, on any threads.
class PoolJob {
 public:
  virtual ~PoolJob() = default;
  // The tasks of the next phase; 0 ends the job, whose last call this is. By one thread at a time.
  virtual uint64_t NextPhase() = 0;
  virtual void RunTask(uint64_t task) = 0;

 private:
  friend class ThreadPool;
  uint64_t count_ = 0;  // of the phase; these two under the pool's mutex
  uint64_t next_ = 0;
  std::atomic<uint64_t> left_ = 0;
};

// Thread-safe. A thread that needs work takes one task of the job that has waited longest, so that
// a long job delays a short one by no more than the tasks under way.
class ThreadPool {
 public:
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();  // ends all jobs first

  void Post(std::shared_ptr<PoolJob> job) ABSL_LOCKS_EXCLUDED(mutex_);
  // All of it, on the calling thread.
  static void RunHere(PoolJob& job);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::deque<std::shared_ptr<PoolJob>> jobs_ ABSL_GUARDED_BY(mutex_);  // with tasks to take
  uint64_t open_ ABSL_GUARDED_BY(mutex_) = 0;                          // jobs that have not ended
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_THREAD_POOL_H_
