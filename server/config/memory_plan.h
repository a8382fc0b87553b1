// How --memory_limit is divided. What callers can make the server hold has a part each, and a bound
// there:
//
//   process     code, driver, threads; executions, calls and connections, which take kilobytes each
//   kernels     those that are live on the device
//   operators   compiled operators that are kept
//   transport   what gRPC holds of messages and connections, by its own account
//   buffers     inputs and outputs under way, scratch, and memory that is kept for the next ones
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
  uint64_t transport_bytes = 0;
  uint64_t buffer_bytes = 0;

  size_t live_kernels() const;  // as many as kernel_bytes hold
};

// Fills in the limits that are 0. InvalidArgument, in terms of the flags, where they ask for more
// together than the memory limit has.
absl::StatusOr<MemoryPlan> DivideMemory(uint64_t host_bytes, Limits& limits);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_MEMORY_PLAN_H_
