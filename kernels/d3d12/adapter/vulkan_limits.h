// Hides large descriptor limits of Vulkan from vkd3d.
//
// vkd3d makes a heap's Vulkan descriptor set as large as the driver allows, for any size of
// the heap: a million descriptors on lavapipe, which take 490 MB and 0.3 s. Without such sets it
// makes new ones for every dispatch, for which lavapipe maps and unmaps memory: a tenth to a fifth
// of the cost of a small run (docs/notes/transport.md).
#ifndef OPMILL_KERNELS_D3D12_ADAPTER_VULKAN_LIMITS_H_
#define OPMILL_KERNELS_D3D12_ADAPTER_VULKAN_LIMITS_H_

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

namespace opmill {

// Wraps `driver`, which must be the same in every call. If a device's update-after-bind sets cannot
// hold kMaxHeapDescriptors, reports to vkd3d that they cannot be used for heaps.
PFN_vkGetInstanceProcAddr WithBoundedLimits(PFN_vkGetInstanceProcAddr driver);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_ADAPTER_VULKAN_LIMITS_H_
