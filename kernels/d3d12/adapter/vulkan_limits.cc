#include "kernels/d3d12/adapter/vulkan_limits.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "kernels/d3d12/memory/descriptor_heap.h"

namespace opmill {
namespace {

using Limits = VkPhysicalDeviceDescriptorIndexingProperties;
using Limit = uint32_t Limits::*;

// vkd3d reserves half of this for root descriptors, which are not used here.
constexpr uint32_t kSetDescriptors = kMaxHeapDescriptors + D3D12_MAX_ROOT_COST;

constexpr Limit kHeapLimits[] = {
    &Limits::maxPerStageDescriptorUpdateAfterBindUniformBuffers,
    &Limits::maxPerStageDescriptorUpdateAfterBindSampledImages,
    &Limits::maxPerStageDescriptorUpdateAfterBindStorageImages,
    &Limits::maxDescriptorSetUpdateAfterBindUniformBuffers,
    &Limits::maxDescriptorSetUpdateAfterBindSampledImages,
    &Limits::maxDescriptorSetUpdateAfterBindStorageImages,
};

PFN_vkGetInstanceProcAddr driver_get_proc = nullptr;
PFN_vkGetPhysicalDeviceProperties2 driver_properties = nullptr;
PFN_vkGetPhysicalDeviceFeatures2 driver_features = nullptr;

template <typename Struct>
Struct* FindInChain(void* chain, VkStructureType type) {
  auto* at = static_cast<VkBaseOutStructure*>(chain);
  while (at != nullptr && at->sType != type) at = at->pNext;
  return reinterpret_cast<Struct*>(at);
}

bool HoldsHeap(VkPhysicalDevice device) {
  Limits limits = {};
  limits.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES;
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &limits;
  driver_properties(device, &properties);
  return std::all_of(std::begin(kHeapLimits), std::end(kHeapLimits),
                     [&limits](Limit limit) { return limits.*limit >= kSetDescriptors; });
}

void VKAPI_CALL BoundedProperties(VkPhysicalDevice device,
                                  VkPhysicalDeviceProperties2* properties) {
  driver_properties(device, properties);
  auto* const limits = FindInChain<Limits>(
      properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES);
  if (limits == nullptr) return;
  for (const Limit limit : kHeapLimits) limits->*limit = std::min(limits->*limit, kSetDescriptors);
}

void VKAPI_CALL FeaturesForHeap(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* features) {
  driver_features(device, features);
  auto* const indexing = FindInChain<VkPhysicalDeviceDescriptorIndexingFeatures>(
      features->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES);
  if (indexing == nullptr || HoldsHeap(device)) return;
  indexing->descriptorBindingUniformBufferUpdateAfterBind = VK_FALSE;
}

PFN_vkVoidFunction VKAPI_CALL GetProc(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = driver_get_proc(instance, name);
  if (found == nullptr) return nullptr;
  // Both names refer to the same function.
  const absl::string_view function = name;
  if (function == "vkGetPhysicalDeviceProperties2" ||
      function == "vkGetPhysicalDeviceProperties2KHR") {
    driver_properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&BoundedProperties);
  }
  if (function == "vkGetPhysicalDeviceFeatures2" || function == "vkGetPhysicalDeviceFeatures2KHR") {
    driver_features = reinterpret_cast<PFN_vkGetPhysicalDeviceFeatures2>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&FeaturesForHeap);
  }
  return found;
}

}  // namespace

PFN_vkGetInstanceProcAddr WithBoundedLimits(PFN_vkGetInstanceProcAddr driver) {
  driver_get_proc = driver;
  return &GetProc;
}

}  // namespace opmill
