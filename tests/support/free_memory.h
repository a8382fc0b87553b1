#ifndef OPMILL_TESTS_SUPPORT_FREE_MEMORY_H_
#define OPMILL_TESTS_SUPPORT_FREE_MEMORY_H_

#include <cstdint>

namespace opmill {

// Host memory that can be had without swapping, in bytes; 0 when the system does not say.
uint64_t FreeMemoryBytes();

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_FREE_MEMORY_H_
