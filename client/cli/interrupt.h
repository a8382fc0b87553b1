// Signals that ask the program to end.
#ifndef OPMILL_CLIENT_CLI_INTERRUPT_H_
#define OPMILL_CLIENT_CLI_INTERRUPT_H_

#include <atomic>

namespace opmill {

// From now on the first Ctrl-C makes this true; the second ends the program.
const std::atomic<bool>& CatchInterrupt();

// From now on Ctrl-C, SIGTERM and SIGHUP run `clean_up` on a thread of its own before they end the
// program with their usual status; a second one ends it at once. A signal that was ignored, as by
// nohup, stays ignored. Only the first call counts.
void CleanUpOnSignals(void (*clean_up)());

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_INTERRUPT_H_
