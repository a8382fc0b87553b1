// Not with platform.h: mingw's DXGI headers and DirectX-Headers declare some of the same things.
#include <windows.h>
// After windows.h.
#include <dxgi1_4.h>

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/d3d12/adapters.h"
#include "kernels/d3d12/adapters_dxgi.h"
#include "kernels/errors.h"

namespace opmill {
namespace {

constexpr UINT kMicrosoft = 0x1414;
constexpr UINT kBasicRenderDriver = 0x8C;  // WARP

struct Releaser {
  void operator()(IUnknown* object) const { object->Release(); }
};
using AdapterPointer = std::unique_ptr<IDXGIAdapter1, Releaser>;

std::string Utf8(const wchar_t* text) {
  std::array<char, 512> bytes = {};
  WideCharToMultiByte(CP_UTF8, 0, text, -1, bytes.data(), static_cast<int>(bytes.size()) - 1,
                      nullptr, nullptr);
  return bytes.data();
}

std::string DriverVersion(IDXGIAdapter1* adapter) {
  LARGE_INTEGER version = {};
  if (FAILED(adapter->CheckInterfaceSupport(__uuidof(IDXGIDevice), &version))) return "";
  return absl::StrCat(" ", HIWORD(version.HighPart), ".", LOWORD(version.HighPart), ".",
                      HIWORD(version.LowPart), ".", LOWORD(version.LowPart));
}

AdapterInfo Describe(IDXGIAdapter1* adapter, uint32_t index) {
  DXGI_ADAPTER_DESC1 desc = {};
  adapter->GetDesc1(&desc);
  const bool software = (desc.Flags & DXGI_ADAPTER_FLAG_SOFTWARE) != 0 ||
                        (desc.VendorId == kMicrosoft && desc.DeviceId == kBasicRenderDriver);
  AdapterInfo info;
  info.index = index;
  info.name = Utf8(desc.Description);
  info.kind = software ? DeviceKind::kSoftware : DeviceKind::kHardware;
  info.driver = absl::StrCat("d3d12.dll", DriverVersion(adapter));
  info.memory_bytes =
      desc.DedicatedVideoMemory != 0 ? desc.DedicatedVideoMemory : desc.SharedSystemMemory;
  return info;
}

// EnumAdapters1 names WARP last where it names it at all; EnumWarpAdapter knows it in any case.
absl::StatusOr<std::vector<AdapterPointer>> Adapters() {
  IDXGIFactory4* raw_factory = nullptr;
  const HRESULT result =
      CreateDXGIFactory1(__uuidof(IDXGIFactory4), reinterpret_cast<void**>(&raw_factory));
  if (FAILED(result)) {
    return absl::NotFoundError(
        absl::StrCat("This machine has no DXGI 1.4: CreateDXGIFactory1 fails "
                     "with 0x",
                     absl::Hex(static_cast<uint32_t>(result)), "."));
  }
  const std::unique_ptr<IDXGIFactory4, Releaser> factory(raw_factory);
  std::vector<AdapterPointer> adapters;
  bool has_software = false;
  IDXGIAdapter1* adapter = nullptr;
  for (UINT i = 0; SUCCEEDED(factory->EnumAdapters1(i, &adapter)); ++i) {
    adapters.emplace_back(adapter);
    has_software |= Describe(adapter, i).kind == DeviceKind::kSoftware;
  }
  if (!has_software && SUCCEEDED(factory->EnumWarpAdapter(__uuidof(IDXGIAdapter1),
                                                          reinterpret_cast<void**>(&adapter)))) {
    adapters.emplace_back(adapter);
  }
  return adapters;
}

}  // namespace

void KeepDriverCacheIn(const std::string& /*directory*/) {}  // Direct3D keeps its own

absl::StatusOr<std::vector<AdapterInfo>> ListAdapters() {
  ASSIGN_OR_RETURN(const std::vector<AdapterPointer> adapters, Adapters());
  std::vector<AdapterInfo> infos;
  for (const AdapterPointer& adapter : adapters) {
    infos.push_back(Describe(adapter.get(), static_cast<uint32_t>(infos.size())));
  }
  // Without an adapter that DXGI names, whatever D3D12CreateDevice takes for the default.
  if (infos.empty()) infos.push_back({.name = "Default adapter", .driver = "d3d12.dll"});
  return infos;
}

absl::StatusOr<std::unique_ptr<IUnknown, AdapterReleaser>> FindAdapter(const AdapterInfo& wanted) {
  ASSIGN_OR_RETURN(std::vector<AdapterPointer> adapters, Adapters());
  if (adapters.empty()) return std::unique_ptr<IUnknown, AdapterReleaser>();
  if (wanted.index >= adapters.size() ||
      Describe(adapters[wanted.index].get(), wanted.index).name != wanted.name) {
    return absl::UnavailableError(
        absl::StrCat("Adapter ", wanted.index, " is no longer ", wanted.name, "."));
  }
  return std::unique_ptr<IUnknown, AdapterReleaser>(adapters[wanted.index].release());
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
