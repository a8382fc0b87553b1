#ifndef OPMILL_TESTS_SUPPORT_FREE_MEMORY_H_
#define OPMILL_TESTS_SUPPORT_FREE_MEMORY_H_

#include <cstdint>

namespace opmill {

// The host memory that is available without swapping, in bytes; 0 if unknown.
uint64_t FreeMemoryBytes();

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_FREE_MEMORY_H_
