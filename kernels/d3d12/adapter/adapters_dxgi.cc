// Does not include platform.h: mingw's DXGI headers and DirectX-Headers have conflicting
// declarations.
#include <windows.h>
// Must follow windows.h.
#include <dxgi1_4.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/utf16.h"
#include "kernels/d3d12/adapter/adapters.h"
#include "kernels/d3d12/adapter/adapters_dxgi.h"

namespace opmill {
namespace {

constexpr UINT kMicrosoft = 0x1414;
constexpr UINT kBasicRenderDriver = 0x8C;  // WARP
constexpr UINT kMesa = 0x10005;            // llvmpipe's vendor id, as reported by Wine
constexpr char kDefaultAdapter[] = "Default adapter";

struct Releaser {
  void operator()(IUnknown* object) const { object->Release(); }
};
using AdapterPointer = std::unique_ptr<IDXGIAdapter1, Releaser>;

std::string DriverVersion(IDXGIAdapter1* adapter) {
  LARGE_INTEGER version = {};
  if (FAILED(adapter->CheckInterfaceSupport(__uuidof(IDXGIDevice), &version))) return "";
  return absl::StrCat(HIWORD(version.HighPart), ".", LOWORD(version.HighPart), ".",
                      HIWORD(version.LowPart), ".", LOWORD(version.LowPart));
}

bool IsWarp(const DXGI_ADAPTER_DESC1& desc) {
  return desc.VendorId == kMicrosoft && desc.DeviceId == kBasicRenderDriver;
}

AdapterInfo Describe(IDXGIAdapter1* adapter, uint32_t index) {
  DXGI_ADAPTER_DESC1 desc = {};
  adapter->GetDesc1(&desc);
  const bool software =
      (desc.Flags & DXGI_ADAPTER_FLAG_SOFTWARE) != 0 || IsWarp(desc) || desc.VendorId == kMesa;
  AdapterInfo info;
  info.index = index;
  info.name = Utf8(desc.Description);
  info.kind = software ? DeviceKind::kSoftware : DeviceKind::kHardware;
  const std::string version = DriverVersion(adapter);
  info.driver = absl::StrCat("d3d12.dll", version.empty() ? "" : " ", version);
  if (std::optional<OldDriver> old = FindOldDriver(info.name, version)) {
    info.old_drivers.push_back(*std::move(old));
  }
  info.memory_bytes =
      desc.DedicatedVideoMemory != 0 ? desc.DedicatedVideoMemory : desc.SharedSystemMemory;
  info.size = SizeOf(info.kind, /*compute_units=*/0, desc.DedicatedVideoMemory);
  return info;
}

struct Adapters {
  std::vector<AdapterPointer> listed;
  std::string warp_error;  // why WARP is not listed, if it is not
};

std::string Describe(HRESULT result) {
  return absl::StrCat("fails with 0x", absl::Hex(static_cast<uint32_t>(result)));
}

// EnumAdapters1 lists WARP last, if at all. EnumWarpAdapter always finds it, except in Wine, which
// does not have WARP.
absl::StatusOr<Adapters> FindAdapters() {
  IDXGIFactory4* raw_factory = nullptr;
  HRESULT result =
      CreateDXGIFactory1(__uuidof(IDXGIFactory4), reinterpret_cast<void**>(&raw_factory));
  if (FAILED(result)) {
    return absl::NotFoundError(
        absl::StrCat("This machine has no DXGI 1.4: CreateDXGIFactory1 ", Describe(result), "."));
  }
  const std::unique_ptr<IDXGIFactory4, Releaser> factory(raw_factory);
  Adapters adapters;
  bool has_warp = false;
  IDXGIAdapter1* adapter = nullptr;
  for (UINT i = 0; SUCCEEDED(factory->EnumAdapters1(i, &adapter)); ++i) {
    adapters.listed.emplace_back(adapter);
    DXGI_ADAPTER_DESC1 desc = {};
    adapter->GetDesc1(&desc);
    has_warp |= IsWarp(desc);
  }
  if (has_warp) return adapters;
  result = factory->EnumWarpAdapter(__uuidof(IDXGIAdapter1), reinterpret_cast<void**>(&adapter));
  if (SUCCEEDED(result)) {
    adapters.listed.emplace_back(adapter);
  } else {
    adapters.warp_error = absl::StrCat("EnumWarpAdapter ", Describe(result));
  }
  return adapters;
}

}  // namespace

void KeepDriverCacheIn(const std::string& /*directory*/) {}  // Direct3D has its own cache

absl::StatusOr<std::vector<AdapterInfo>> ListAdapters() {
  ASSIGN_OR_RETURN(const Adapters adapters, FindAdapters());
  std::vector<AdapterInfo> infos;
  for (const AdapterPointer& adapter : adapters.listed) {
    infos.push_back(Describe(adapter.get(), static_cast<uint32_t>(infos.size())));
  }
  // The last resort, instead of WARP: the default adapter of D3D12CreateDevice.
  if (!adapters.warp_error.empty()) {
    infos.push_back({.index = static_cast<uint32_t>(infos.size()),
                     .name = kDefaultAdapter,
                     .kind = DeviceKind::kSoftware,
                     .driver = absl::StrCat("d3d12.dll; ", adapters.warp_error)});
  }
  return infos;
}

absl::StatusOr<std::unique_ptr<IUnknown, AdapterReleaser>> FindAdapter(const AdapterInfo& wanted) {
  if (wanted.name == kDefaultAdapter) return std::unique_ptr<IUnknown, AdapterReleaser>();
  ASSIGN_OR_RETURN(Adapters adapters, FindAdapters());
  if (wanted.index >= adapters.listed.size() ||
      Describe(adapters.listed[wanted.index].get(), wanted.index).name != wanted.name) {
    return absl::UnavailableError(
        absl::StrCat("Adapter ", wanted.index, " is no longer ", wanted.name, "."));
  }
  return std::unique_ptr<IUnknown, AdapterReleaser>(adapters.listed[wanted.index].release());
}

void AdapterReleaser::operator()(IUnknown* adapter) const { adapter->Release(); }

std::string ShaderCompilerName() {
  const HMODULE library = GetModuleHandleW(L"d3dcompiler_47.dll");
  wchar_t path[MAX_PATH] = {};
  WIN32_FILE_ATTRIBUTE_DATA file = {};
  if (library == nullptr || GetModuleFileNameW(library, path, MAX_PATH) == 0 ||
      !GetFileAttributesExW(path, GetFileExInfoStandard, &file)) {
    return "d3dcompiler_47.dll";
  }
  return absl::StrCat("d3dcompiler_47.dll ", file.nFileSizeLow, " ",
                      file.ftLastWriteTime.dwHighDateTime, " ", file.ftLastWriteTime.dwLowDateTime);
}

std::string TakeDriverMessage() { return ""; }

}  // namespace opmill
