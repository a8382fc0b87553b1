#include <windows.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/host/stop_signal.h"

namespace opmill {
namespace {

class ConsoleStopSignal final : public StopSignal {
 public:
  static ConsoleStopSignal& Get() {
    static ConsoleStopSignal& signal = *new ConsoleStopSignal();
    return signal;
  }

  // On a thread of the system's.
  static BOOL WINAPI Handle(DWORD event) {
    if (event == CTRL_LOGOFF_EVENT) return TRUE;  // comes to services, and is not about them
    Get().Request();
    // The system ends the process when this returns from a close or a shutdown. main does so when
    // all is drained, if the system gives it the time.
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) Sleep(INFINITE);
    return TRUE;
  }

  void Wait(const std::function<void()>& /*reload*/) override ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto has_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return released_ || requests_ > seen_;
    };
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&has_ended));
    ++seen_;
  }

  void Request() override ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    ++requests_;
  }

  void Release() override ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    released_ = true;
  }

 private:
  absl::Mutex mutex_;
  int requests_ ABSL_GUARDED_BY(mutex_) = 0;
  int seen_ ABSL_GUARDED_BY(mutex_) = 0;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

StopSignal& StopSignal::Install() {
  ConsoleStopSignal& signal = ConsoleStopSignal::Get();
  // A process that was started with Ctrl-C turned off, as one in a group of its own, wants it back.
  SetConsoleCtrlHandler(nullptr, FALSE);
  SetConsoleCtrlHandler(&ConsoleStopSignal::Handle, TRUE);
  return signal;
}

}  // namespace opmill
