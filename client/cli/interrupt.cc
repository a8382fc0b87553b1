#include "client/cli/interrupt.h"

#include <csignal>

namespace opmill {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // or a signal's handler could not set it

void OnInterrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& CatchInterrupt() {
  std::signal(SIGINT, &OnInterrupt);
  return interrupted;
}

}  // namespace opmill
