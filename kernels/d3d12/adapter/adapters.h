// Lists, selects and opens the machine's adapters: Vulkan's physical devices through vkd3d, or
// DXGI's adapters on Windows.
#ifndef OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_H_
#define OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/d3d12/adapter/adapter_size.h"
#include "kernels/d3d12/adapter/driver_versions.h"
#include "kernels/engine/device.h"

struct ID3D12CommandQueue;
struct ID3D12Device;

namespace opmill {

struct AdapterInfo {
  uint32_t index = 0;  // for --adapter=<index>
  std::string name;
  DeviceKind kind = DeviceKind::kHardware;
  std::string driver;  // "vkd3d 2.1 on Vulkan (llvmpipe, Mesa 25.0.7)"
  uint64_t memory_bytes = 0;
  AdapterSize size = {};
  std::vector<OldDriver> old_drivers = {};  // drivers of this adapter that are too old

  friend bool operator==(const AdapterInfo&, const AdapterInfo&) = default;
};

enum class AdapterChoice : uint32_t { kAuto, kHardware, kSoftware };

// Sets `directory` (UTF-8) as the cache of drivers that compile shaders themselves and read the
// location from the environment, such as Mesa's. A location that the environment already sets takes
// precedence. Must be called before the first adapter is listed; has no effect later.
void KeepDriverCacheIn(const std::string& directory);

// Lists the adapters in the system's order.
absl::StatusOr<std::vector<AdapterInfo>> ListAdapters();

// Returns the adapters to try, best first: under kAuto, hardware before software. `wanted` is an
// index or part of the name in any case; empty selects all. Returns NotFound, with the list, if no
// adapter matches.
absl::StatusOr<std::vector<AdapterInfo>> ChooseAdapters(absl::Span<const AdapterInfo> adapters,
                                                        AdapterChoice choice,
                                                        absl::string_view wanted);

// Opens a device on the adapter. The caller owns the reference.
absl::StatusOr<ID3D12Device*> OpenAdapter(const AdapterInfo& adapter);

// True if the driver has lost the device of this queue, and the Direct3D implementation has not
// reported it.
bool HasSilentlyLostDevice(ID3D12CommandQueue* queue);

// The name and version of the library that implements D3DCompile.
std::string ShaderCompilerName();

// Returns and clears the last message of the Direct3D implementation on this thread; empty if there
// is none.
std::string TakeDriverMessage();

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_H_
