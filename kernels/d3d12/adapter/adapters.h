// The machine's adapters: Vulkan's physical devices over vkd3d, DXGI's adapters on Windows.
#ifndef OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_H_
#define OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/d3d12/adapter/driver_versions.h"
#include "kernels/engine/device.h"

struct ID3D12CommandQueue;
struct ID3D12Device;

namespace opmill {

struct AdapterInfo {
  uint32_t index = 0;  // what --adapter=<index> means
  std::string name;
  DeviceKind kind = DeviceKind::kHardware;
  std::string driver;  // "vkd3d 2.1 on Vulkan (llvmpipe, Mesa 25.0.7)"
  uint64_t memory_bytes = 0;
  std::vector<OldDriver> old_drivers = {};  // of those behind it

  friend bool operator==(const AdapterInfo&, const AdapterInfo&) = default;
};

enum class AdapterChoice : uint32_t { kAuto, kHardware, kSoftware };

// Drivers that compile for themselves and ask the environment where to keep that (Mesa's do) keep
// it under `directory`, UTF-8. Where the environment already says so, it is obeyed. Before the
// first adapter is listed; later it does nothing.
void KeepDriverCacheIn(const std::string& directory);

// In the system's own order.
absl::StatusOr<std::vector<AdapterInfo>> ListAdapters();

// The adapters worth trying, best first: hardware before software under kAuto. `wanted` is an index
// or a part of the name in any case; empty takes all. NotFound, with the list, when none is left.
absl::StatusOr<std::vector<AdapterInfo>> ChooseAdapters(absl::Span<const AdapterInfo> adapters,
                                                        AdapterChoice choice,
                                                        absl::string_view wanted);

// A device of that adapter, as a reference that the caller owns.
absl::StatusOr<ID3D12Device*> OpenAdapter(const AdapterInfo& adapter);

// The driver under this queue has lost its device, and what implements Direct3D keeps that to
// itself.
bool HasSilentlyLostDevice(ID3D12CommandQueue* queue);

// The name and version of what implements D3DCompile.
std::string ShaderCompilerName();

// What the implementation last complained of on this thread, once; empty where it is silent.
std::string TakeDriverMessage();

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_H_
