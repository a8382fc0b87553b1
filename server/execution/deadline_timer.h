// Calls back when a time has come.
#ifndef OPMILL_SERVER_EXECUTION_DEADLINE_TIMER_H_
#define OPMILL_SERVER_EXECUTION_DEADLINE_TIMER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/time/time.h"

namespace opmill {

// Safe to use from many threads. Callbacks come from the timer's one thread and may use the timer.
class DeadlineTimer {
 public:
  using Handle = std::pair<absl::Time, uint64_t>;
  static inline const Handle kNone = {absl::InfiniteFuture(), 0};

  DeadlineTimer() : thread_([this] { Run(); }) {}
  ~DeadlineTimer();

  // kNone, and no callback ever, for a time that never comes.
  Handle Add(absl::Time when, std::function<void()> callback);
  // The callback may be under way.
  void Remove(Handle handle);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Handle, std::function<void()>> waiting_;
  uint64_t last_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_DEADLINE_TIMER_H_
