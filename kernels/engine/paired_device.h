// Two devices as one: the first computes; the second, its standby, answers while the first is lost,
// and takes runs so small that a submission to the first would take longer.
#ifndef OPMILL_KERNELS_ENGINE_PAIRED_DEVICE_H_
#define OPMILL_KERNELS_ENGINE_PAIRED_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "kernels/engine/device.h"

namespace opmill {

struct PairedDeviceOptions {
  // Runs that cost the standby no more (OperatorCost::run_bytes) go there.
  uint64_t small_bytes = 0;
  // Set by whoever learns of the first device's losses and returns. Required.
  std::shared_ptr<const std::atomic<bool>> first_is_available;
};

// An operator has to fit both devices. No run of it fails because the first device is lost: what
// the loss ends is run again on the standby, with new memory for its outputs, since a lost device
// may write to the old. So the memory of the first device must stay readable at its loss.
//
// Buffers of up to small_bytes, and all that are allocated during a loss, are the standby's. The
// first device gets copies of the small ones; a run with larger ones stays with the standby.
//
// The first device returns Unavailable at once while it is lost, does not block in Allocate, and
// allows Allocate in callbacks. The standby's Compile is cheap, and its runs take any memory.
std::unique_ptr<Device> CreatePairedDevice(std::unique_ptr<Device> first,
                                           std::unique_ptr<Device> standby,
                                           PairedDeviceOptions options);

}  // namespace opmill

#endif  // OPMILL_KERNELS_ENGINE_PAIRED_DEVICE_H_
