#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/adapter/adapters.h"
#include "kernels/d3d12/adapter/vulkan_limits.h"
#include "kernels/d3d12/hresult.h"
#include "kernels/d3d12/platform.h"
#include "kernels/d3d12/queue/event_vkd3d.h"

#define VK_NO_PROTOTYPES
#define VKD3D_NO_WIN32_TYPES
#include <vkd3d.h>

// From headers that define their own Windows types.
extern "C" void vkd3d_utils_set_log_callback(PFN_vkd3d_log callback);
extern "C" const char* vkd3d_shader_get_version(unsigned int* major, unsigned int* minor);

namespace opmill {
namespace {

thread_local std::string open_line;
thread_local std::string last_error_line;

// vkd3d's messages arrive in pieces; lines look like "7f3a:err:function: text\n".
void KeepErrors(const char* format, va_list arguments) {
  char piece[1024];
  vsnprintf(piece, sizeof(piece), format, arguments);
  absl::StrAppend(&open_line, piece);
  if (open_line.empty() || open_line.back() != '\n') return;
  open_line.pop_back();
  const size_t level = open_line.find(":err:");
  if (level != std::string::npos) {
    last_error_line = absl::StrCat("vkd3d: ", open_line.substr(level + 5));
  }
  open_line.clear();
}

// vkd3d's Vulkan instance, so that the listed devices are those that are opened.
class Vulkan {
 public:
  // The instance of this process. It is never destroyed: some drivers leak when they are unloaded,
  // and loading them takes time. A failure is retried.
  static absl::StatusOr<const Vulkan*> Get() {
    static absl::Mutex mutex(absl::kConstInit);
    static const Vulkan* instance = nullptr;
    absl::MutexLock lock(&mutex);
    if (instance == nullptr) {
      ASSIGN_OR_RETURN(const Vulkan created, Create());
      instance = new Vulkan(created);
    }
    return instance;
  }

  vkd3d_instance* instance() const { return instance_; }

  VkResult SubmitNothing(VkQueue queue) const {
    return Proc<PFN_vkQueueSubmit>("vkQueueSubmit")(queue, 0, nullptr, VK_NULL_HANDLE);
  }

  absl::StatusOr<std::vector<VkPhysicalDevice>> PhysicalDevices() const {
    const auto enumerate = Proc<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices");
    uint32_t count = 0;
    VkResult result = enumerate(vk_instance(), &count, nullptr);
    std::vector<VkPhysicalDevice> devices(count);
    if (result == VK_SUCCESS) result = enumerate(vk_instance(), &count, devices.data());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
      return absl::InternalError(
          absl::StrCat("Vulkan: vkEnumeratePhysicalDevices fails with ", result, "."));
    }
    devices.resize(count);
    return devices;
  }

  AdapterInfo Describe(VkPhysicalDevice device, uint32_t index) const {
    VkPhysicalDeviceDriverProperties driver = {};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &driver;
    Proc<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2KHR")(device,
                                                                                  &properties);
    VkPhysicalDeviceMemoryProperties memory = {};
    Proc<PFN_vkGetPhysicalDeviceMemoryProperties>("vkGetPhysicalDeviceMemoryProperties")(device,
                                                                                         &memory);
    AdapterInfo info;
    info.index = index;
    info.name = properties.properties.deviceName;
    info.kind = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU
                    ? DeviceKind::kSoftware
                    : DeviceKind::kHardware;
    const std::string vkd3d = ShaderCompilerName();
    info.driver =
        absl::StrCat(vkd3d, " on Vulkan (", driver.driverName, " ", driver.driverInfo, ")");
    for (std::optional<OldDriver>& old :
         std::array{FindOldDriver(driver.driverName, driver.driverInfo),
                    FindOldDriver("vkd3d-shader", vkd3d)}) {
      if (old.has_value()) info.old_drivers.push_back(*std::move(old));
    }
    for (uint32_t heap = 0; heap < memory.memoryHeapCount; ++heap) {
      if ((memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
        info.memory_bytes += memory.memoryHeaps[heap].size;
      }
    }
    const bool has_own_memory =
        properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    info.size = SizeOf(info.kind, ComputeUnits(device), has_own_memory ? info.memory_bytes : 0);
    return info;
  }

 private:
  static absl::StatusOr<Vulkan> Create() {
    // If vkd3d's log was requested, it should be complete.
    if (std::getenv("VKD3D_DEBUG") == nullptr) vkd3d_utils_set_log_callback(KeepErrors);
    static void* const loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (loader == nullptr) {
      return absl::NotFoundError(
          "This machine has no Vulkan loader: libvulkan.so.1 cannot be opened.");
    }
    Vulkan vulkan;
    vulkan.get_proc_ =
        reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));

    const vkd3d_application_info application = {
        .type = VKD3D_STRUCTURE_TYPE_APPLICATION_INFO,
        .next = nullptr,
        .application_name = "OpMill",
        .application_version = 0,
        .engine_name = nullptr,
        .engine_version = 0,
        .api_version = VKD3D_API_VERSION_1_2,
    };
    vkd3d_instance_create_info info = {};
    info.type = VKD3D_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.next = &application;
    info.pfn_signal_event = SignalEvent;
    info.wchar_size = sizeof(WCHAR);
    info.pfn_vkGetInstanceProcAddr = WithBoundedLimits(vulkan.get_proc_);
    const absl::Status created =
        ToStatus(vkd3d_create_instance(&info, &vulkan.instance_), "vkd3d_create_instance");
    if (!created.ok()) {
      return absl::NotFoundError(
          absl::StrCat("This machine has no working Vulkan driver (", created.message(),
                       ") The package mesa-vulkan-drivers contains a software driver."));
    }
    return vulkan;
  }

  // 0 if the driver does not report them.
  uint32_t ComputeUnits(VkPhysicalDevice device) const {
    VkPhysicalDeviceProperties2 properties = {};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    const auto get = Proc<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2KHR");
    if (HasExtension(device, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) {
      VkPhysicalDeviceShaderCorePropertiesAMD amd = {};
      amd.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD;
      properties.pNext = &amd;
      get(device, &properties);
      return amd.shaderEngineCount * amd.shaderArraysPerEngineCount *
             amd.computeUnitsPerShaderArray;
    }
    if (HasExtension(device, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
      VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia = {};
      nvidia.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
      properties.pNext = &nvidia;
      get(device, &properties);
      return nvidia.shaderSMCount;
    }
    return 0;
  }

  bool HasExtension(VkPhysicalDevice device, absl::string_view name) const {
    const auto enumerate =
        Proc<PFN_vkEnumerateDeviceExtensionProperties>("vkEnumerateDeviceExtensionProperties");
    uint32_t count = 0;
    enumerate(device, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> extensions(count);
    enumerate(device, nullptr, &count, extensions.data());
    return std::any_of(
        extensions.begin(), extensions.end(),
        [name](const VkExtensionProperties& each) { return name == each.extensionName; });
  }

  VkInstance vk_instance() const { return vkd3d_instance_get_vk_instance(instance_); }

  template <typename Function>
  Function Proc(const char* name) const {
    return reinterpret_cast<Function>(get_proc_(vk_instance(), name));
  }

  PFN_vkGetInstanceProcAddr get_proc_ = nullptr;
  vkd3d_instance* instance_ = nullptr;
};

}  // namespace

void KeepDriverCacheIn(const std::string& directory) {
  constexpr char kMesa[] = "MESA_SHADER_CACHE_DIR";
  if (std::getenv(kMesa) != nullptr) return;
  const std::filesystem::path path = std::filesystem::path(directory) / "mesa";
  std::error_code ignored;  // without the directory Mesa caches nothing
  std::filesystem::create_directories(path, ignored);
  setenv(kMesa, path.c_str(), /*overwrite=*/1);
}

absl::StatusOr<std::vector<AdapterInfo>> ListAdapters() {
  ASSIGN_OR_RETURN(const Vulkan* const vulkan, Vulkan::Get());
  ASSIGN_OR_RETURN(const std::vector<VkPhysicalDevice> devices, vulkan->PhysicalDevices());
  std::vector<AdapterInfo> adapters;
  for (const VkPhysicalDevice device : devices) {
    adapters.push_back(vulkan->Describe(device, static_cast<uint32_t>(adapters.size())));
  }
  return adapters;
}

absl::StatusOr<ID3D12Device*> OpenAdapter(const AdapterInfo& adapter) {
  ASSIGN_OR_RETURN(const Vulkan* const vulkan, Vulkan::Get());
  ASSIGN_OR_RETURN(const std::vector<VkPhysicalDevice> devices, vulkan->PhysicalDevices());
  if (adapter.index >= devices.size() ||
      vulkan->Describe(devices[adapter.index], adapter.index).name != adapter.name) {
    return absl::UnavailableError(
        absl::StrCat("Adapter ", adapter.index, " is no longer ", adapter.name, "."));
  }
  vkd3d_device_create_info info = {};
  info.type = VKD3D_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.minimum_feature_level = D3D_FEATURE_LEVEL_11_0;
  info.instance = vulkan->instance();
  info.vk_physical_device = devices[adapter.index];
  ID3D12Device* device = nullptr;
  RETURN_IF_ERROR(ToStatus(
      vkd3d_create_device(&info, __uuidof(ID3D12Device), reinterpret_cast<void**>(&device)),
      "vkd3d_create_device"));
  return device;
}

// vkd3d 2.1 logs the error of a submission, and returns success. An empty submission fails in the
// same way.
bool HasSilentlyLostDevice(ID3D12CommandQueue* queue) {
  const absl::StatusOr<const Vulkan*> vulkan = Vulkan::Get();
  if (!vulkan.ok()) return false;
  const VkResult result = (*vulkan)->SubmitNothing(vkd3d_acquire_vk_queue(queue));
  vkd3d_release_vk_queue(queue);
  return result == VK_ERROR_DEVICE_LOST;
}

std::string ShaderCompilerName() {
  return vkd3d_shader_get_version(nullptr, nullptr);  // "vkd3d-shader 2.1 (Debian 2.1-1)"
}

std::string TakeDriverMessage() { return std::exchange(last_error_line, {}); }

}  // namespace opmill
