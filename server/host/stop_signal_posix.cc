#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "server/host/stop_signal.h"

namespace opmill {
namespace {

// All threads inherit the mask, so the signals wait for sigwait.
class PosixStopSignal final : public StopSignal {
 public:
  PosixStopSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  void Wait(const std::function<void()>& reload) override {
    while (!released_) {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (signal != SIGHUP) return;
      reload();
    }
  }

  void Request() override { kill(getpid(), SIGTERM); }

  void Release() override {
    released_ = true;
    Request();  // wakes the waiting thread; blocked in all others
  }

 private:
  sigset_t signals_;
  std::atomic<bool> released_ = false;
};

}  // namespace

StopSignal& StopSignal::Install() {
  static PosixStopSignal& signal = *new PosixStopSignal();
  return signal;
}

}  // namespace opmill
