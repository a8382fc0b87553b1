// What the processor's device asks of the operating system.
#ifndef OPMILL_KERNELS_CPU_HOST_H_
#define OPMILL_KERNELS_CPU_HOST_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace opmill {

// Processors that this process may use: by its affinity, and by the quota of its container. At
// least 1.
uint32_t UsableProcessors();

std::string ProcessorName();  // "AMD EPYC 9B45"; "CPU" where it is not known

// Zeroed memory, in large pages where the system has them to give; null where there is none.
// `size_bytes` is a multiple of kPageUnit.
inline constexpr uint64_t kPageUnit = uint64_t{2} << 20;
std::byte* MapPages(uint64_t size_bytes);
void UnmapPages(std::byte* pages, uint64_t size_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_HOST_H_
