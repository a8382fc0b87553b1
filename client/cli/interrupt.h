// Handles signals that request termination.
#ifndef OPMILL_CLIENT_CLI_INTERRUPT_H_
#define OPMILL_CLIENT_CLI_INTERRUPT_H_

#include <atomic>

namespace opmill {

// After this call, the first Ctrl-C sets the returned value to true; the second one ends the
// program.
const std::atomic<bool>& CatchInterrupt();

// After this call, Ctrl-C, SIGTERM and SIGHUP run `clean_up` on a separate thread before they end
// the program with their usual status; a second signal ends it at once. Signals that are ignored
// (nohup) stay ignored. Only the first call has an effect.
void CleanUpOnSignals(void (*clean_up)());

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_INTERRUPT_H_
