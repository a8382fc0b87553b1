// Turns a failed allocation into an error.
#ifndef OPMILL_SERVER_API_OUT_OF_MEMORY_H_
#define OPMILL_SERVER_API_OUT_OF_MEMORY_H_

#include <new>

#include "absl/status/status.h"

namespace opmill {

// Calls `decode`, which returns a Status and may allocate in proportion to a message. If memory
// runs out, that call fails and not the server.
template <typename Function>
absl::Status CatchOutOfMemory(Function decode) {
  try {
    return decode();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("The server has no memory for the message.");
  }
}

}  // namespace opmill

#endif  // OPMILL_SERVER_API_OUT_OF_MEMORY_H_
