// Ctrl-C as a wish instead of an end.
#ifndef OPMILL_CLIENT_CLI_INTERRUPT_H_
#define OPMILL_CLIENT_CLI_INTERRUPT_H_

#include <atomic>

namespace opmill {

// From now on the first Ctrl-C makes this true; the second ends the program.
const std::atomic<bool>& CatchInterrupt();

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_INTERRUPT_H_
