// Runs callbacks at given times.
#ifndef OPMILL_SERVER_HOST_DEADLINE_TIMER_H_
#define OPMILL_SERVER_HOST_DEADLINE_TIMER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"

namespace opmill {

// Thread-safe. Callbacks run on the timer's single thread and may use the timer.
class DeadlineTimer {
 public:
  using Handle = std::pair<absl::Time, uint64_t>;
  static inline const Handle kNone = {absl::InfiniteFuture(), 0};

  DeadlineTimer() : thread_([this] { Run(); }) {}
  ~DeadlineTimer();

  // Returns kNone for InfiniteFuture; that callback never runs.
  Handle Add(absl::Time when, std::function<void()> callback) ABSL_LOCKS_EXCLUDED(mutex_);
  // The callback may be running already.
  void Remove(Handle handle) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  // Blocks until the first callback is due, and removes it from the queue. Null once the timer
  // stops.
  std::function<void()> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  SteadyCondVar changed_;  // the first entry changed, or stopping_ was set
  std::map<Handle, std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_DEADLINE_TIMER_H_
