#include "kernels/base/errors.h"
#include "kernels/d3d12/adapter/adapters.h"
#include "kernels/d3d12/adapter/adapters_dxgi.h"
#include "kernels/d3d12/hresult.h"
#include "kernels/d3d12/platform.h"

namespace opmill {

absl::StatusOr<ID3D12Device*> OpenAdapter(const AdapterInfo& adapter) {
  ASSIGN_OR_RETURN(const auto found, FindAdapter(adapter));
  ID3D12Device* device = nullptr;
  RETURN_IF_ERROR(
      ToStatus(D3D12CreateDevice(found.get(), D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Device),
                                 reinterpret_cast<void**>(&device)),
               "D3D12CreateDevice"));
  return device;
}

bool HasSilentlyLostDevice(ID3D12CommandQueue*) { return false; }

}  // namespace opmill
