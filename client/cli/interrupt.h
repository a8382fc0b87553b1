// Termination signals.
#ifndef OPMILL_CLIENT_CLI_INTERRUPT_H_
#define OPMILL_CLIENT_CLI_INTERRUPT_H_

#include <atomic>

namespace opmill {

// Installs a handler: the first Ctrl-C sets this flag; the second ends the program.
const std::atomic<bool>& CatchInterrupt();

// Installs handlers: Ctrl-C, SIGTERM and SIGHUP run `clean_up` on a separate thread before they end
// the program with their usual status; a second signal ends it at once. Ignored signals, for
// example under nohup, stay ignored. Only the first call has an effect.
void CleanUpOnSignals(void (*clean_up)());

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_INTERRUPT_H_
