// The amount of memory that is available to this process.
#ifndef OPMILL_SERVER_HOST_HOST_MEMORY_H_
#define OPMILL_SERVER_HOST_HOST_MEMORY_H_

#include <cstdint>

namespace opmill {

// The memory of the machine, or of the container (control group, job) if that has less.
uint64_t HostMemoryBytes();

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_HOST_MEMORY_H_
