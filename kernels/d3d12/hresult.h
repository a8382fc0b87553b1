// Converts HRESULTs to absl::Status. Other code does not return HRESULTs.
#ifndef OPMILL_KERNELS_D3D12_HRESULT_H_
#define OPMILL_KERNELS_D3D12_HRESULT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/d3d12/platform.h"

namespace opmill {

bool IsDeviceLoss(HRESULT result);

// Returns OK, or a sentence that names the call: Unavailable for a lost device, ResourceExhausted
// for lack of memory, otherwise Internal.
absl::Status ToStatus(HRESULT result, absl::string_view call);

// The error of every operation on a lost device.
absl::Status DeviceLostError();

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_HRESULT_H_
