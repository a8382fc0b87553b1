// Connects the DXGI code with the Direct3D 12 code: their headers cannot be included in the same
// file.
#ifndef OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_DXGI_H_
#define OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_DXGI_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/d3d12/adapter/adapters.h"

struct IUnknown;

namespace opmill {

struct AdapterReleaser {
  void operator()(IUnknown* adapter) const;
};

// Null means the default adapter.
absl::StatusOr<std::unique_ptr<IUnknown, AdapterReleaser>> FindAdapter(const AdapterInfo& wanted);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_ADAPTER_ADAPTERS_DXGI_H_
