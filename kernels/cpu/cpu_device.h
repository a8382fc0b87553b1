// The processor as a device: vector kernels for the instruction sets that it has, on one pool of
// threads. Its memory is the host's.
#ifndef OPMILL_KERNELS_CPU_CPU_DEVICE_H_
#define OPMILL_KERNELS_CPU_CPU_DEVICE_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/device.h"

namespace opmill {

struct CpuDeviceOptions {
  uint32_t threads = 0;                            // 0: one per processor that may be used
  uint64_t max_buffer_bytes = uint64_t{16} << 30;  // handed out at once
  uint64_t max_scratch_bytes = uint64_t{4} << 30;  // of one operator
  uint64_t max_idle_bytes = uint64_t{2} << 30;     // kept for buffers to come
  // A run that touches no more is computed within Run, whose callback then comes from there; a
  // thread of the pool would take as long to wake. 0: every run goes to the pool.
  uint64_t max_inline_bytes = uint64_t{128} << 10;
};

// Callbacks of its runs may call Run. A run can be stopped: no task of it begins after a stop of
// its token, and a task takes about a millisecond, except those of top_k with large k.
std::unique_ptr<Device> CreateCpuDevice(const CpuDeviceOptions& options = {});

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_CPU_DEVICE_H_
