// A device that needs no hardware or driver: programs run node by node on host threads, through
// ReferenceRun.
#ifndef OPMILL_KERNELS_REFERENCE_DEVICE_REFERENCE_DEVICE_H_
#define OPMILL_KERNELS_REFERENCE_DEVICE_REFERENCE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/engine/device.h"

namespace opmill {

struct ReferenceDeviceOptions {
  uint32_t threads = 0;      // 0: one per processor, at most 8
  size_t max_queued = 1024;  // waiting runs; further ones end with ResourceExhausted
  uint64_t max_buffer_bytes = uint64_t{16} << 30;  // of all allocated buffers together
  uint64_t max_scratch_bytes = uint64_t{4} << 30;  // of the intermediates of one program
};

std::unique_ptr<Device> CreateReferenceDevice(const ReferenceDeviceOptions& options = {});

}  // namespace opmill

#endif  // OPMILL_KERNELS_REFERENCE_DEVICE_REFERENCE_DEVICE_H_
