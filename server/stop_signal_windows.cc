#include <windows.h>

#include <condition_variable>
#include <mutex>

#include "server/stop_signal.h"

namespace opmill {
namespace {

class ConsoleStopSignal;
ConsoleStopSignal* g_signal = nullptr;  // the handler has no argument of its own

class ConsoleStopSignal final : public StopSignal {
 public:
  ConsoleStopSignal() {
    g_signal = this;
    SetConsoleCtrlHandler(&Handle, TRUE);
  }

  void Wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return released_ || events_ > seen_; });
    ++seen_;
  }

  void Release() override {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  void Done() override {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

 private:
  // On a thread of the system's. The process dies when it returns from a close or shutdown event,
  // so it waits until all is drained.
  static BOOL WINAPI Handle(DWORD event) {
    std::unique_lock lock(g_signal->mutex_);
    ++g_signal->events_;
    g_signal->changed_.notify_all();
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) {
      g_signal->changed_.wait(lock, [] { return g_signal->done_; });
    }
    return TRUE;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int events_ = 0;
  int seen_ = 0;
  bool released_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<StopSignal> StopSignal::Install() { return std::make_unique<ConsoleStopSignal>(); }

}  // namespace opmill
