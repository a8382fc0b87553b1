// The threads of the cpu device. They take tasks from all jobs in rotation.
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
  uint64_t count_ = 0;  // tasks of the phase; count_ and next_ are guarded by the pool's mutex
  uint64_t next_ = 0;
  std::atomic<uint64_t> left_ = 0;
};

// Thread-safe. An idle thread takes one task from the job that has waited longest, so a long job
// delays a short one only by the tasks in progress.
class ThreadPool {
 public:
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();  // finishes all jobs first

  void Post(std::shared_ptr<PoolJob> job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs the whole job on the calling thread.
  static void RunHere(PoolJob& job);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::deque<std::shared_ptr<PoolJob>> jobs_ ABSL_GUARDED_BY(mutex_);  // jobs that have tasks left
  uint64_t open_ ABSL_GUARDED_BY(mutex_) = 0;                          // jobs that have not ended
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // declared last: they use the members above
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_THREAD_POOL_H_
