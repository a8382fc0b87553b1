// What this process takes of its machine.
#ifndef OPMILL_SERVER_HOST_PROCESS_USAGE_H_
#define OPMILL_SERVER_HOST_PROCESS_USAGE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace opmill {

// What the system does not tell is 0.
struct ProcessUsage {
  uint64_t resident_bytes = 0;
  uint64_t open_handles = 0;
  absl::Duration processor_time;
};

ProcessUsage ReadProcessUsage();

// Of those, the one that costs microseconds.
uint64_t ReadResidentBytes();

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_PROCESS_USAGE_H_
