#include "kernels/d3d12/adapter/adapter_size.h"

#include <algorithm>

namespace opmill {
namespace {

// A compute unit has room for 2048 lanes (RDNA, Ampere, Hopper); GCN for 2560, Ada for 1536. On an
// H100, plans for 2 to 32 groups a unit take the same time within 5 %.
constexpr uint32_t kGroupsPerUnit = 8;

// Direct3D and DXGI report no compute units. Larger GPUs have more memory: 20 to 43 groups fit for
// each GiB of GPUs of 4 to 24 GiB, among them RTX 3060 (19), RX 6400 (24), RTX 4060 (24), RX 7900
// XTX (32) and RTX 4090 (43). Those of data centers have more memory for their units, and reach the
// upper limit. Too many groups cost a little: a second pass over more records.
constexpr uint64_t kGroupsPerGib = 32;
constexpr uint64_t kFewestGroups = 64;  // 1 MiB in flight: 1.5 TB/s at 700 ns

}  // namespace

AdapterSize SizeOf(DeviceKind kind, uint32_t compute_units, uint64_t own_memory_bytes) {
  uint64_t groups = kFewestGroups;
  if (kind != DeviceKind::kHardware) return {.groups = static_cast<uint32_t>(groups)};
  groups = compute_units > 0
               ? uint64_t{compute_units} * kGroupsPerUnit
               : std::min<uint64_t>((own_memory_bytes >> 30) * kGroupsPerGib, AdapterSize().groups);
  return {.groups = static_cast<uint32_t>(std::max(groups, kFewestGroups))};
}

}  // namespace opmill
