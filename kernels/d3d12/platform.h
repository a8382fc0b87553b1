// Includes Direct3D 12 for all files of this folder, on Windows (MSVC and mingw) and with vkd3d.
// The differences are limited to this header, adapters_*.cc and event_*.cc.
#ifndef OPMILL_KERNELS_D3D12_PLATFORM_H_
#define OPMILL_KERNELS_D3D12_PLATFORM_H_

#include <cstdint>

#ifdef _WIN32

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
// clang-format off
#include <windows.h>
#include <unknwn.h>  // after windows.h, before what builds on it
#include <directx/d3d12.h>
#ifndef _MSC_VER
#include <dxguids/dxguids.h>
#endif
#include <wrl/client.h>
// clang-format on
#ifndef DXGI_ERROR_DEVICE_REMOVED  // winerror.h of some toolchains has it, and dxgi.h of others
#define DXGI_ERROR_DEVICE_REMOVED static_cast<HRESULT>(0x887A0005L)
#define DXGI_ERROR_DEVICE_HUNG static_cast<HRESULT>(0x887A0006L)
#define DXGI_ERROR_DEVICE_RESET static_cast<HRESULT>(0x887A0007L)
#define DXGI_ERROR_DRIVER_INTERNAL_ERROR static_cast<HRESULT>(0x887A0020L)
#endif

#else

// vkd3d's COM methods and D3D functions have the Microsoft x64 calling convention; the Linux shim
// of DirectX-Headers declares none.
// clang-format off
#include <basetsd.h>  // the shim's base; then the convention, then what is declared with it
#undef STDMETHODCALLTYPE
#undef WINAPI
#ifdef __x86_64__
#define STDMETHODCALLTYPE __attribute__((ms_abi))
#define WINAPI __attribute__((ms_abi))
#else
#define STDMETHODCALLTYPE
#define WINAPI
#endif
#include <wsl/winadapter.h>
#include <directx/d3d12.h>
#include <dxguids/dxguids.h>
#include <wsl/wrladapter.h>
// clang-format on

#endif

// Declared here because the headers that declare it (d3dcompiler.h, vkd3d_utils.h) conflict with
// DirectX-Headers on some systems.
extern "C" HRESULT WINAPI D3DCompile(const void* data, SIZE_T size, const char* name,
                                     const D3D_SHADER_MACRO* macros, ID3DInclude* include,
                                     const char* entry, const char* target, UINT flags,
                                     UINT effect_flags, ID3DBlob** code, ID3DBlob** messages);

namespace opmill {

using Microsoft::WRL::ComPtr;

// Methods that return a struct take (this, result*) in every implementation, but only MSVC calls
// them that way from a declaration that returns by value.
#if defined(_MSC_VER)
inline D3D12_CPU_DESCRIPTOR_HANDLE CpuStart(ID3D12DescriptorHeap* heap) {
  return heap->GetCPUDescriptorHandleForHeapStart();
}
inline D3D12_GPU_DESCRIPTOR_HANDLE GpuStart(ID3D12DescriptorHeap* heap) {
  return heap->GetGPUDescriptorHandleForHeapStart();
}
#elif defined(_WIN32)
inline D3D12_CPU_DESCRIPTOR_HANDLE CpuStart(ID3D12DescriptorHeap* heap) {
  D3D12_CPU_DESCRIPTOR_HANDLE handle = {};
  heap->GetCPUDescriptorHandleForHeapStart(&handle);
  return handle;
}
inline D3D12_GPU_DESCRIPTOR_HANDLE GpuStart(ID3D12DescriptorHeap* heap) {
  D3D12_GPU_DESCRIPTOR_HANDLE handle = {};
  heap->GetGPUDescriptorHandleForHeapStart(&handle);
  return handle;
}
#else
template <typename Result>
Result CallForStruct(void* object, int vtable_slot) {
  using Method = Result*(STDMETHODCALLTYPE*)(void*, Result*);
  Result result = {};
  void* const* vtable = *static_cast<void***>(object);
  reinterpret_cast<Method>(vtable[vtable_slot])(object, &result);
  return result;
}
inline D3D12_CPU_DESCRIPTOR_HANDLE CpuStart(ID3D12DescriptorHeap* heap) {
  return CallForStruct<D3D12_CPU_DESCRIPTOR_HANDLE>(heap, 9);
}
inline D3D12_GPU_DESCRIPTOR_HANDLE GpuStart(ID3D12DescriptorHeap* heap) {
  return CallForStruct<D3D12_GPU_DESCRIPTOR_HANDLE>(heap, 10);
}
#endif

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_PLATFORM_H_
