// The operating system functions that the cpu device needs.
#ifndef OPMILL_KERNELS_CPU_OPERATING_SYSTEM_H_
#define OPMILL_KERNELS_CPU_OPERATING_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace opmill {

// The number of processors that this process may use, according to its affinity and its container's
// quota. At least 1.
uint32_t UsableProcessors();

std::string ProcessorName();  // "AMD EPYC 9B45"; "CPU" if unknown

// The processor time of the calling thread; on Windows, where it is too coarse, the time of a
// clock.
absl::Duration ThreadTime();

// Allocates zeroed memory, in large pages if available; null if out of memory. `size_bytes` must be
// a multiple of kPageUnit.
inline constexpr uint64_t kPageUnit = uint64_t{2} << 20;
std::byte* MapPages(uint64_t size_bytes);
void UnmapPages(std::byte* pages, uint64_t size_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_OPERATING_SYSTEM_H_
