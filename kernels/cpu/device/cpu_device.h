// The processor as a device: vector kernels for the instruction sets that it supports, on one
// thread pool. Its memory is the host's.
#ifndef OPMILL_KERNELS_CPU_DEVICE_CPU_DEVICE_H_
#define OPMILL_KERNELS_CPU_DEVICE_CPU_DEVICE_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/device.h"

namespace opmill {

struct CpuDeviceOptions {
  uint32_t threads = 0;                            // 0: one per processor that may be used
  uint64_t max_buffer_bytes = uint64_t{16} << 30;  // of all allocated buffers together
  uint64_t max_scratch_bytes = uint64_t{4} << 30;  // of one program
  uint64_t max_idle_bytes = uint64_t{2} << 30;  // kept for reuse: buffers, and the memory of runs
  // A run that touches at most this many bytes is computed within Run, on the calling thread, which
  // also makes the callback. Mostly it takes 0.03 ms; waking threads of the pool takes longer than
  // they save, even if processors are idle. The limit is four times as high for runs
  // whose phases have one task each. 0: every run goes to the pool.
  uint64_t max_inline_bytes = uint64_t{512} << 10;
  // Inputs of at least this size are not kept, if the program can be computed while they arrive.
  // For smaller ones, that would save less than it takes to find out.
  uint64_t min_incremental_bytes = uint64_t{128} << 10;
};

// Run callbacks may call Run. A stopped run begins no further task; a task takes about a
// millisecond, except tasks of top_k with large k.
std::unique_ptr<Device> CreateCpuDevice(const CpuDeviceOptions& options = {});

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_DEVICE_CPU_DEVICE_H_
