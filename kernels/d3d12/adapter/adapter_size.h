// How much work fills an adapter. Plans split long reductions over as many groups.
#ifndef OPMILL_KERNELS_D3D12_ADAPTER_ADAPTER_SIZE_H_
#define OPMILL_KERNELS_D3D12_ADAPTER_ADAPTER_SIZE_H_

#include <cstdint>

#include "kernels/engine/device.h"

namespace opmill {

struct AdapterSize {
  uint32_t groups = 1056;  // of 256 lanes; as many as an H200 has room for

  friend bool operator==(const AdapterSize&, const AdapterSize&) = default;
};

// `compute_units`: AMD's compute units or NVIDIA's SMs, if the driver reports them, else 0.
// `own_memory_bytes`: the memory of the adapter itself, 0 if it shares that of the processor.
AdapterSize SizeOf(DeviceKind kind, uint32_t compute_units, uint64_t own_memory_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_ADAPTER_ADAPTER_SIZE_H_
