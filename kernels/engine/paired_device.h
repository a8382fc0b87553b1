// Two devices as one: the first, and its standby, which computes while the first is lost, and takes
// runs so small that a submission to the first would take longer.
#ifndef OPMILL_KERNELS_ENGINE_PAIRED_DEVICE_H_
#define OPMILL_KERNELS_ENGINE_PAIRED_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "kernels/engine/device.h"

namespace opmill {

struct PairedDeviceOptions {
  // Runs that cost the standby at most this much (ProgramCost::run_bytes) go to it.
  uint64_t small_bytes = 0;
  // Kept up to date by the caller, who learns of the first device's losses. Required.
  std::shared_ptr<const std::atomic<bool>> first_is_available;
};

// A program must fit both devices. No run fails because the first device is lost: runs that the
// loss ends are run again on the standby, with new memory for their outputs, because a lost device
// may still write to the old. The memory of the first device must therefore survive its loss.
//
// A device buffer belongs to one of the two for its life. A run with one of the first device runs
// there, whatever its size, and ends Unavailable if that is lost; it is not run again.
//
// Buffers of up to small_bytes, and all that are allocated during a loss, are the standby's. The
// first device gets copies of the small ones; a run with larger ones stays with the standby.
//
// While it is lost, the first device must return Unavailable at once. It must not block in
// Allocate, and must allow Allocate in callbacks. The standby's Compile must be cheap, and its runs
// must accept the memory of both devices.
std::unique_ptr<Device> CreatePairedDevice(std::unique_ptr<Device> first,
                                           std::unique_ptr<Device> standby,
                                           PairedDeviceOptions options);

}  // namespace opmill

#endif  // OPMILL_KERNELS_ENGINE_PAIRED_DEVICE_H_
