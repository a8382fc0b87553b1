// Vulkan as vkd3d is shown it: with no more descriptors than the heap has.
//
// vkd3d makes a heap's Vulkan set as large as the driver allows, whatever the size of the heap: of
// a million descriptors on lavapipe, which take 490 MB and 0.3 s. Without such sets it makes new
// ones for every dispatch, which lavapipe maps memory for and unmaps: a tenth to a fifth of what a
// small run costs (docs/notes/transport.md).
#ifndef OPMILL_KERNELS_D3D12_ADAPTER_VULKAN_LIMITS_H_
#define OPMILL_KERNELS_D3D12_ADAPTER_VULKAN_LIMITS_H_

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

namespace opmill {

// What `driver`, which is the same in every call, finds. Of a device whose sets would not hold
// kMaxHeapDescriptors vkd3d is told that they cannot be used for heaps.
PFN_vkGetInstanceProcAddr WithBoundedLimits(PFN_vkGetInstanceProcAddr driver);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_ADAPTER_VULKAN_LIMITS_H_
