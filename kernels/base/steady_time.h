// A clock that does not jump when the time of day is set, and waits that follow it.
#ifndef OPMILL_KERNELS_BASE_STEADY_TIME_H_
#define OPMILL_KERNELS_BASE_STEADY_TIME_H_

#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opmill {

// For deadlines and durations. It has nothing to do with the time of day, which absl::Now()
// returns.
inline absl::Time SteadyNow() {
  return absl::FromUnixNanos(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// absl::CondVar and absl::Mutex::AwaitWithTimeout follow the time of day in absl's versions of
// 2022: after it is set back by an hour, they wait for an hour too long.
class SteadyCondVar {
 public:
  void SignalAll() { changed_.notify_all(); }

  // Waits until the condition is true; the mutex is held while it is called. Returns whether it is,
  // at the deadline at the latest. What makes it true must signal.
  bool Await(absl::Mutex* mutex, absl::FunctionRef<bool()> condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    bool is_true = condition();
    while (!is_true && SteadyNow() < deadline) {
      WaitUntil(mutex, deadline);
      is_true = condition();
    }
    return is_true;
  }

  // Returns after a signal or at the deadline, and sometimes for no reason.
  void WaitUntil(absl::Mutex* mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Lockable lock{mutex};
    if (deadline == absl::InfiniteFuture()) {
      changed_.wait(lock);
      return;
    }
    using Clock = std::chrono::steady_clock;
    changed_.wait_until(lock,
                        Clock::time_point(absl::ToChronoNanoseconds(deadline - absl::UnixEpoch())));
  }

 private:
  struct Lockable {
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Unlock(); }
    absl::Mutex* mutex;
  };

  std::condition_variable_any changed_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_STEADY_TIME_H_
