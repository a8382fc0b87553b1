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

  // Called on a thread of the operating system.
  static BOOL WINAPI Handle(DWORD event) {
    if (event == CTRL_LOGOFF_EVENT) return TRUE;  // services get it when any user logs off
    Get().Request();
    // After a close or shutdown event, Windows ends the process when this handler returns. main
    // ends it when the server has drained, if Windows allows enough time.
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
  // A process that was started in a group of its own has Ctrl-C disabled; enable it.
  SetConsoleCtrlHandler(nullptr, FALSE);
  SetConsoleCtrlHandler(&ConsoleStopSignal::Handle, TRUE);
  return signal;
}

}  // namespace opmill
