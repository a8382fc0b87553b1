// What vkd3d sees of a driver, with simulated drivers, because a machine has only a few real ones.
#include "kernels/d3d12/adapter/vulkan_limits.h"

#include <cstdint>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/memory/descriptor_heap.h"

namespace opmill {
namespace {

using Limits = VkPhysicalDeviceDescriptorIndexingProperties;
using Features = VkPhysicalDeviceDescriptorIndexingFeatures;

uint32_t uniform_buffers = 0;  // that the driver's sets can hold
constexpr uint32_t kOthers = 1'000'000;

void VKAPI_CALL Properties(VkPhysicalDevice, VkPhysicalDeviceProperties2* properties) {
  auto* const limits = static_cast<Limits*>(properties->pNext);
  if (limits == nullptr) return;
  limits->maxPerStageDescriptorUpdateAfterBindUniformBuffers = uniform_buffers;
  limits->maxDescriptorSetUpdateAfterBindUniformBuffers = uniform_buffers;
  limits->maxPerStageDescriptorUpdateAfterBindSampledImages = kOthers;
  limits->maxDescriptorSetUpdateAfterBindSampledImages = kOthers;
  limits->maxPerStageDescriptorUpdateAfterBindStorageImages = kOthers;
  limits->maxDescriptorSetUpdateAfterBindStorageImages = kOthers;
  limits->maxUpdateAfterBindDescriptorsInAllPools = kOthers;
}

void VKAPI_CALL DriverFeatures(VkPhysicalDevice, VkPhysicalDeviceFeatures2* features) {
  if (features->pNext == nullptr) return;
  auto* const indexing = static_cast<Features*>(features->pNext);
  indexing->descriptorBindingUniformBufferUpdateAfterBind = VK_TRUE;
  indexing->descriptorBindingSampledImageUpdateAfterBind = VK_TRUE;
}

void VKAPI_CALL Other() {}

PFN_vkVoidFunction VKAPI_CALL DriverGetProc(VkInstance, const char* name) {
  const absl::string_view function = name;
  if (function == "vkGetPhysicalDeviceProperties2KHR") {
    return reinterpret_cast<PFN_vkVoidFunction>(&Properties);
  }
  if (function == "vkGetPhysicalDeviceFeatures2KHR") {
    return reinterpret_cast<PFN_vkVoidFunction>(&DriverFeatures);
  }
  return function == "vkDestroyInstance" ? &Other : nullptr;
}

class VulkanLimitsTest : public testing::Test {
 protected:
  Limits ShownLimits() {
    Limits limits = {};
    limits.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES;
    VkPhysicalDeviceProperties2 properties = {};
    properties.pNext = &limits;
    properties_(nullptr, &properties);
    return limits;
  }

  Features ShownFeatures() {
    Features indexing = {};
    indexing.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES;
    VkPhysicalDeviceFeatures2 features = {};
    features.pNext = &indexing;
    features_(nullptr, &features);
    return indexing;
  }

  const PFN_vkGetInstanceProcAddr get_proc_ = WithBoundedLimits(&DriverGetProc);
  const PFN_vkGetPhysicalDeviceProperties2 properties_ =
      reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(
          get_proc_(nullptr, "vkGetPhysicalDeviceProperties2KHR"));
  const PFN_vkGetPhysicalDeviceFeatures2 features_ =
      reinterpret_cast<PFN_vkGetPhysicalDeviceFeatures2>(
          get_proc_(nullptr, "vkGetPhysicalDeviceFeatures2KHR"));
};

TEST_F(VulkanLimitsTest, SetsAreSlightlyLargerThanTheHeap) {
  uniform_buffers = 500'000;
  const Limits limits = ShownLimits();
  for (const uint32_t limit : {limits.maxPerStageDescriptorUpdateAfterBindUniformBuffers,
                               limits.maxDescriptorSetUpdateAfterBindUniformBuffers,
                               limits.maxPerStageDescriptorUpdateAfterBindSampledImages,
                               limits.maxDescriptorSetUpdateAfterBindSampledImages,
                               limits.maxPerStageDescriptorUpdateAfterBindStorageImages,
                               limits.maxDescriptorSetUpdateAfterBindStorageImages}) {
    // vkd3d subtracts 32.
    EXPECT_GE(limit, kMaxHeapDescriptors + 32);
    EXPECT_LE(limit, kMaxHeapDescriptors + 64);
  }
  EXPECT_EQ(limits.maxUpdateAfterBindDescriptorsInAllPools, kOthers);
  EXPECT_TRUE(ShownFeatures().descriptorBindingUniformBufferUpdateAfterBind);
}

TEST_F(VulkanLimitsTest, SetsSmallerThanTheHeapAreNotUsed) {
  uniform_buffers = 90;
  EXPECT_EQ(ShownLimits().maxDescriptorSetUpdateAfterBindUniformBuffers, 90);
  const Features features = ShownFeatures();
  EXPECT_FALSE(features.descriptorBindingUniformBufferUpdateAfterBind);
  EXPECT_TRUE(features.descriptorBindingSampledImageUpdateAfterBind);
}

TEST_F(VulkanLimitsTest, OtherQueriesAreUnchanged) {
  uniform_buffers = 90;
  VkPhysicalDeviceProperties2 properties = {};
  properties_(nullptr, &properties);
  VkPhysicalDeviceFeatures2 features = {};
  features_(nullptr, &features);
  EXPECT_EQ(get_proc_(nullptr, "vkDestroyInstance"), &Other);
  EXPECT_EQ(get_proc_(nullptr, "vkUnheardOf"), nullptr);
}

}  // namespace
}  // namespace opmill
