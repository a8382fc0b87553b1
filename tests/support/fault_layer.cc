// A Vulkan layer that simulates driver failures. Files in the directory FAULT_LAYER_SWITCHES are
// its switches:
//
//   lose_device  the next device that gets work finishes what it has, and is lost: this and all
//                later work fails. The file is then removed.
//   no_device    while it exists, no device can be created
//   no_pipeline  while it exists, no compute pipeline can be created
//   no_memory    while it exists, no memory of 64 MiB or more can be allocated at once
//   no_barriers  while it exists, pipeline barriers are left out
//   no_clock     devices that are opened while it exists have no timestamps
//
// Faults occur where a driver's faults occur, so that all layers above handle them in the same way.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <system_error>

namespace {

struct InstanceFunctions {
  PFN_vkGetInstanceProcAddr get_address;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties get_queue_families;
};

struct DeviceFunctions {
  VkDevice device;
  PFN_vkGetDeviceProcAddr get_address;
  PFN_vkDestroyDevice destroy;
  PFN_vkDeviceWaitIdle wait_idle;
  PFN_vkQueueSubmit submit;
  PFN_vkAllocateMemory allocate;
  PFN_vkCreateComputePipelines create_compute_pipelines;
  PFN_vkCmdPipelineBarrier barrier;
};

constexpr VkDeviceSize kLargeBytes = VkDeviceSize{64} << 20;

std::mutex mutex;
// Keyed by the dispatch key: the first word of an instance, or of a device, its queues and command
// buffers.
std::map<void*, InstanceFunctions> instances;
std::map<void*, DeviceFunctions> devices;
std::set<VkDevice> lost_devices;

template <typename Handle>
void* KeyOf(Handle handle) {
  return *reinterpret_cast<void**>(handle);
}

std::filesystem::path SwitchOf(const char* name) {
  const char* const folder = std::getenv("FAULT_LAYER_SWITCHES");
  return std::filesystem::path(folder == nullptr ? "/nowhere" : folder) / name;
}

template <typename Info>
Info* LinkOf(const void* create_info_chain, VkStructureType type) {
  auto* info = static_cast<Info*>(const_cast<void*>(create_info_chain));
  while (info != nullptr && !(info->sType == type && info->function == VK_LAYER_LINK_INFO)) {
    info = static_cast<Info*>(const_cast<void*>(info->pNext));
  }
  return info;
}

VkResult CreateInstance(const VkInstanceCreateInfo* create_info,
                        const VkAllocationCallbacks* allocator, VkInstance* instance) {
  auto* link = LinkOf<VkLayerInstanceCreateInfo>(create_info->pNext,
                                                 VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(next(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(create_info, allocator, instance);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(mutex);
  constexpr char kGetQueueFamilies[] = "vkGetPhysicalDeviceQueueFamilyProperties";
  instances[KeyOf(*instance)] = {
      .get_address = next,
      .get_queue_families = reinterpret_cast<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
          next(*instance, kGetQueueFamilies))};
  return result;
}

void GetQueueFamilies(VkPhysicalDevice physical_device, uint32_t* count,
                      VkQueueFamilyProperties* families) {
  PFN_vkGetPhysicalDeviceQueueFamilyProperties get = nullptr;
  {
    const std::lock_guard lock(mutex);
    get = instances.at(KeyOf(physical_device)).get_queue_families;
  }
  get(physical_device, count, families);
  if (families == nullptr || !std::filesystem::exists(SwitchOf("no_clock"))) return;
  for (uint32_t i = 0; i < *count; ++i) families[i].timestampValidBits = 0;
}

VkResult CreateDevice(VkPhysicalDevice physical_device, const VkDeviceCreateInfo* create_info,
                      const VkAllocationCallbacks* allocator, VkDevice* device) {
  if (std::filesystem::exists(SwitchOf("no_device"))) return VK_ERROR_INITIALIZATION_FAILED;
  auto* link = LinkOf<VkLayerDeviceCreateInfo>(create_info->pNext,
                                               VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(next(VK_NULL_HANDLE, "vkCreateDevice"));
  const VkResult result = create(physical_device, create_info, allocator, device);
  if (result != VK_SUCCESS) return result;
  const auto find = [&](const char* name) { return next_device(*device, name); };
  const std::lock_guard lock(mutex);
  devices[KeyOf(*device)] = {
      .device = *device,
      .get_address = next_device,
      .destroy = reinterpret_cast<PFN_vkDestroyDevice>(find("vkDestroyDevice")),
      .wait_idle = reinterpret_cast<PFN_vkDeviceWaitIdle>(find("vkDeviceWaitIdle")),
      .submit = reinterpret_cast<PFN_vkQueueSubmit>(find("vkQueueSubmit")),
      .allocate = reinterpret_cast<PFN_vkAllocateMemory>(find("vkAllocateMemory")),
      .create_compute_pipelines =
          reinterpret_cast<PFN_vkCreateComputePipelines>(find("vkCreateComputePipelines")),
      .barrier = reinterpret_cast<PFN_vkCmdPipelineBarrier>(find("vkCmdPipelineBarrier"))};
  return result;
}

void DestroyDevice(VkDevice device, const VkAllocationCallbacks* allocator) {
  DeviceFunctions functions;
  {
    const std::lock_guard lock(mutex);
    const auto found = devices.find(KeyOf(device));
    functions = found->second;
    devices.erase(found);
    lost_devices.erase(device);
  }
  functions.destroy(device, allocator);
}

VkResult QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
  DeviceFunctions functions;
  bool is_lost = false;
  {
    const std::lock_guard lock(mutex);
    functions = devices.at(KeyOf(queue));
    is_lost = lost_devices.contains(functions.device);
    if (!is_lost) {
      std::error_code ignored;
      is_lost = std::filesystem::remove(SwitchOf("lose_device"), ignored);
      if (is_lost) {
        lost_devices.insert(functions.device);
        functions.wait_idle(functions.device);
      }
    }
  }
  return is_lost ? VK_ERROR_DEVICE_LOST : functions.submit(queue, count, submits, fence);
}

VkResult AllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                        const VkAllocationCallbacks* allocator, VkDeviceMemory* memory) {
  if (info->allocationSize >= kLargeBytes && std::filesystem::exists(SwitchOf("no_memory"))) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  PFN_vkAllocateMemory allocate = nullptr;
  {
    const std::lock_guard lock(mutex);
    allocate = devices.at(KeyOf(device)).allocate;
  }
  return allocate(device, info, allocator, memory);
}

VkResult CreateComputePipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                const VkComputePipelineCreateInfo* infos,
                                const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
  if (std::filesystem::exists(SwitchOf("no_pipeline"))) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkCreateComputePipelines create = nullptr;
  {
    const std::lock_guard lock(mutex);
    create = devices.at(KeyOf(device)).create_compute_pipelines;
  }
  return create(device, cache, count, infos, allocator, pipelines);
}

void CmdPipelineBarrier(VkCommandBuffer commands, VkPipelineStageFlags before,
                        VkPipelineStageFlags after, VkDependencyFlags dependencies,
                        uint32_t memory_count, const VkMemoryBarrier* memory, uint32_t buffer_count,
                        const VkBufferMemoryBarrier* buffers, uint32_t image_count,
                        const VkImageMemoryBarrier* images) {
  if (std::filesystem::exists(SwitchOf("no_barriers"))) return;
  PFN_vkCmdPipelineBarrier barrier = nullptr;
  {
    const std::lock_guard lock(mutex);
    barrier = devices.at(KeyOf(commands)).barrier;
  }
  barrier(commands, before, after, dependencies, memory_count, memory, buffer_count, buffers,
          image_count, images);
}

PFN_vkVoidFunction Ours(const char* name) {
  const struct {
    const char* name;
    PFN_vkVoidFunction function;
  } kFunctions[] = {
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(&CreateInstance)},
      {"vkGetPhysicalDeviceQueueFamilyProperties",
       reinterpret_cast<PFN_vkVoidFunction>(&GetQueueFamilies)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(&CreateDevice)},
      {"vkDestroyDevice", reinterpret_cast<PFN_vkVoidFunction>(&DestroyDevice)},
      {"vkQueueSubmit", reinterpret_cast<PFN_vkVoidFunction>(&QueueSubmit)},
      {"vkAllocateMemory", reinterpret_cast<PFN_vkVoidFunction>(&AllocateMemory)},
      {"vkCreateComputePipelines", reinterpret_cast<PFN_vkVoidFunction>(&CreateComputePipelines)},
      {"vkCmdPipelineBarrier", reinterpret_cast<PFN_vkVoidFunction>(&CmdPipelineBarrier)},
  };
  for (const auto& each : kFunctions) {
    if (std::strcmp(each.name, name) == 0) return each.function;
  }
  return nullptr;
}

PFN_vkVoidFunction GetDeviceProcAddr(VkDevice device, const char* name) {
  if (const PFN_vkVoidFunction ours = Ours(name)) return ours;
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&GetDeviceProcAddr);
  }
  PFN_vkGetDeviceProcAddr next = nullptr;
  {
    const std::lock_guard lock(mutex);
    next = devices.at(KeyOf(device)).get_address;
  }
  return next(device, name);
}

PFN_vkVoidFunction GetInstanceProcAddr(VkInstance instance, const char* name) {
  if (const PFN_vkVoidFunction ours = Ours(name)) return ours;
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&GetDeviceProcAddr);
  }
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&GetInstanceProcAddr);
  }
  if (instance == VK_NULL_HANDLE) return nullptr;
  PFN_vkGetInstanceProcAddr next = nullptr;
  {
    const std::lock_guard lock(mutex);
    next = instances.at(KeyOf(instance)).get_address;
  }
  return next(instance, name);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VkResult vkNegotiateLoaderLayerInterfaceVersion(
    VkNegotiateLayerInterface* layer) {
  layer->loaderLayerInterfaceVersion = 2;
  layer->pfnGetInstanceProcAddr = &GetInstanceProcAddr;
  layer->pfnGetDeviceProcAddr = &GetDeviceProcAddr;
  layer->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
