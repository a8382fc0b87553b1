#include "kernels/d3d12/memory/device_constants.h"

#include "kernels/base/errors.h"

namespace opmill {

absl::StatusOr<DeviceConstants> DeviceConstants::Create(BufferPool& pool, Placement use,
                                                        uint64_t size_bytes) {
  DeviceConstants constants;
  constants.use_ = use;
  ASSIGN_OR_RETURN(constants.source_, pool.Allocate(Placement::kHostInput, size_bytes));
  if (!pool.unified_memory()) {
    ASSIGN_OR_RETURN(constants.copy_, pool.Allocate(use, size_bytes));
  }
  return constants;
}

}  // namespace opmill
