// A few threads for work that may take long: planning and compiling.
#ifndef OPMILL_SERVER_HOST_WORKER_POOL_H_
#define OPMILL_SERVER_HOST_WORKER_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
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
  void Post(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    Add(posted_, {.run = std::move(work)});
  }
  // Work that may take seconds: one thread, if there are several, is left for that of Post. After a
  // stop of `cancelled` it takes little time, and does not wait for other long work any more.
  void PostLong(std::function<void()> work, const std::stop_token& cancelled = {})
      ABSL_LOCKS_EXCLUDED(mutex_) {
    PostCancellable(&WorkerPool::long_, std::move(work), cancelled);
  }
  // The same with low priority: runs when no other work is waiting, or kMostAhead pieces of it have
  // gone ahead.
  void PostLowPriority(std::function<void()> work, const std::stop_token& cancelled = {})
      ABSL_LOCKS_EXCLUDED(mutex_) {
    PostCancellable(&WorkerPool::low_priority_, std::move(work), cancelled);
  }

 private:
  using Cancel = std::optional<std::stop_callback<std::function<void()>>>;
  // Destroyed without the lock, which the callback takes.
  struct Work {
    uint64_t number = 0;  // in the order of Add
    std::function<void()> run;
    std::shared_ptr<Cancel> cancel = nullptr;  // null: it cannot be cancelled
  };
  using Queue = std::deque<Work>;

  void Add(Queue& queue, Work work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostCancellable(Queue WorkerPool::*queue, std::function<void()> work,
                       const std::stop_token& cancelled) ABSL_LOCKS_EXCLUDED(mutex_);
  // Posts the work with this callback as work that takes little time, if it still waits.
  void Hurry(const Cancel* cancel) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run();
  // Whether a thread may begin long work.
  bool MayBeginLong() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return long_now_ < most_long_; }
  // The queue whose first piece of work is due; null if there is none.
  Queue* FindDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Blocks until there is work. False once the pool stops and nothing is left for this thread.
  bool RunNext() ABSL_LOCKS_EXCLUDED(mutex_);

  const uint32_t most_long_;
  absl::Mutex mutex_;
  Queue posted_ ABSL_GUARDED_BY(mutex_);
  Queue long_ ABSL_GUARDED_BY(mutex_);
  Queue low_priority_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t long_now_ ABSL_GUARDED_BY(mutex_) = 0;  // threads with long work, or of low priority
  uint32_t ahead_ ABSL_GUARDED_BY(mutex_) = 0;     // of the first of low_priority_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_WORKER_POOL_H_
