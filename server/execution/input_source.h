// Where the bytes of an execution's input come from.
#ifndef OPMILL_SERVER_EXECUTION_INPUT_SOURCE_H_
#define OPMILL_SERVER_EXECUTION_INPUT_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace opmill {

// Each input of a request has its own. Without `read`, its caller sends it in chunks
// (Executor::Receive).
struct InputSource {
  // Fills `to` with the bytes from `offset` on. Called on threads of the executor, for several
  // parts at a time. An error that it returns ends the execution.
  std::function<absl::Status(uint64_t offset, absl::Span<std::byte> to)> read;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_INPUT_SOURCE_H_
