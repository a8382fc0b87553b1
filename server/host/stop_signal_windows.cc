#include <windows.h>

#include <condition_variable>
#include <mutex>

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

  void Wait(const std::function<void()>& /*reload*/) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return released_ || requests_ > seen_; });
    ++seen_;
  }

  void Request() override {
    const std::lock_guard lock(mutex_);
    ++requests_;
    changed_.notify_all();
  }

  void Release() override {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int requests_ = 0;
  int seen_ = 0;
  bool released_ = false;
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
