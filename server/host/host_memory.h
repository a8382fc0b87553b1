// How much memory this process may count on.
#ifndef OPMILL_SERVER_HOST_HOST_MEMORY_H_
#define OPMILL_SERVER_HOST_HOST_MEMORY_H_

#include <cstdint>

namespace opmill {

// Of the machine, or of the container (control group, job) where that has less.
uint64_t HostMemoryBytes();

}  // namespace opmill

#endif  // OPMILL_SERVER_HOST_HOST_MEMORY_H_
