// A few threads for what may take long: planning and compiling.
#ifndef OPMILL_SERVER_EXECUTION_WORKER_POOL_H_
#define OPMILL_SERVER_EXECUTION_WORKER_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace opmill {

// Safe to use from many threads. Ends what has been posted before it is destroyed.
class WorkerPool {
 public:
  explicit WorkerPool(uint32_t threads);
  ~WorkerPool();

  void Post(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // After all that Post has been given.
  void PostPatient(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  // Blocks. Null once the pool stops and nothing is left.
  std::function<void()> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::deque<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> patient_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_WORKER_POOL_H_
