// Where the bytes of an execution's input come from.
#ifndef OPMILL_SERVER_EXECUTION_INPUT_SOURCE_H_
#define OPMILL_SERVER_EXECUTION_INPUT_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/tensors/tensor_store.h"

namespace opmill {

// Each input of a request has its own. Without any member, its caller sends it in chunks
// (Executor::Receive).
struct InputSource {
  bool is_sent() const { return read == nullptr && resident == nullptr; }

  // Fills `to` with the bytes from `offset` on. Called on threads of the executor, for several
  // parts at a time. An error that it returns ends the execution.
  std::function<absl::Status(uint64_t offset, absl::Span<std::byte> to)> read;
  // A tensor that the server has, whose first bytes are the input. Nothing is copied.
  std::shared_ptr<const ResidentTensor> resident;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_INPUT_SOURCE_H_
