// The resources that this process uses.
#ifndef OPMILL_SERVER_HOST_PROCESS_USAGE_H_
#define OPMILL_SERVER_HOST_PROCESS_USAGE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace opmill {

// Values that the system does not provide are 0.
struct ProcessUsage {
  uint64_t resident_bytes = 0;
  uint64_t open_handles = 0;
  absl::Duration processor_time;
};

ProcessUsage ReadProcessUsage();

// Only resident_bytes; takes microseconds.
uint64_t ReadResidentBytes();

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_PROCESS_USAGE_H_
