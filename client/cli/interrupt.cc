#include "client/cli/interrupt.h"

#include <chrono>
#include <csignal>
#include <thread>

namespace opmill {
namespace {

constexpr int kEndingSignals[] = {
    SIGINT,
    SIGTERM,
#ifdef SIGHUP  // not on Windows
    SIGHUP,
#endif
};
// There is no portable way to wake a thread from a signal handler.
constexpr std::chrono::milliseconds kPoll(20);

std::atomic<bool> interrupted{false};
std::atomic<int> ending_signal{0};
// Required in signal handlers.
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void OnInterrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

void OnEndingSignal(int number) {
  ending_signal.store(number);
  std::signal(number, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& CatchInterrupt() {
  std::signal(SIGINT, &OnInterrupt);
  return interrupted;
}

void CleanUpOnSignals(void (*clean_up)()) {
  static std::atomic<bool> is_set{false};
  if (is_set.exchange(true)) return;
  for (const int number : kEndingSignals) {
    if (std::signal(number, &OnEndingSignal) == SIG_IGN) std::signal(number, SIG_IGN);
  }
  std::thread([clean_up] {
    while (ending_signal.load() == 0) std::this_thread::sleep_for(kPoll);
    clean_up();
    std::raise(ending_signal.load());
  }).detach();
}

}  // namespace opmill
