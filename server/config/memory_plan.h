// How --memory_limit is divided. Each kind of memory that callers can make the server hold is one
// part with its own limit:
//
//   process     code, driver, threads; executions, calls and connections, which take kilobytes each
//   kernels     live kernels on the device
//   operators   compiled operators in the cache
//   models      ONNX models of the repository, and those that callers have sent
//   transport   messages and connections, as counted by gRPC
//   http        bodies of HTTP requests, and what they are decoded to
//   resident    tensors that stay on the server
//   buffers     inputs and outputs in flight, scratch, and memory that is kept for reuse
#ifndef OPMILL_SERVER_CONFIG_MEMORY_PLAN_H_
#define OPMILL_SERVER_CONFIG_MEMORY_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace opmill {

struct MemoryPlan {
  uint64_t limit_bytes = 0;
  uint64_t process_bytes = 0;
  uint64_t kernel_bytes = 0;
  uint64_t operator_bytes = 0;
  uint64_t model_bytes = 0;
  uint64_t transport_bytes = 0;
  uint64_t http_bytes = 0;
  uint64_t resident_tensor_bytes = 0;
  uint64_t buffer_bytes = 0;

  size_t live_kernels() const;  // the number that fits into kernel_bytes
};

// What the server has beside the parts of every server.
struct OptionalParts {
  bool repository = false;
  bool http = false;
};

// Sets the limits that are 0. Returns InvalidArgument, in terms of the flags, if together they need
// more than the memory limit.
absl::StatusOr<MemoryPlan> DivideMemory(uint64_t host_bytes, OptionalParts parts, Limits& limits);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_MEMORY_PLAN_H_
