// A few threads for work that may take long: planning and compiling.
#ifndef OPMILL_SERVER_HOST_WORKER_POOL_H_
#define OPMILL_SERVER_HOST_WORKER_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace opmill {

// Thread-safe. The destructor finishes all posted work.
class WorkerPool {
 public:
  static constexpr uint32_t kMostAhead = 16;

  explicit WorkerPool(uint32_t threads);
  ~WorkerPool();

  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()); }
  void Post(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Low priority: runs when no work of Post is waiting, or kMostAhead pieces of it have gone ahead.
  void PostLowPriority(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  // Blocks until there is work. Null once the pool stops and no work is left.
  std::function<void()> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::deque<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> low_priority_ ABSL_GUARDED_BY(mutex_);
  uint32_t ahead_ ABSL_GUARDED_BY(mutex_) = 0;  // of the first of low_priority_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_WORKER_POOL_H_
