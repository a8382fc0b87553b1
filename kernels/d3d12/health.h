// Whether a device still answers, known to all who call it.
#ifndef OPMILL_KERNELS_D3D12_HEALTH_H_
#define OPMILL_KERNELS_D3D12_HEALTH_H_

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/d3d12/hresult.h"
#include "kernels/d3d12/platform.h"

namespace opmill {

// A lost device stays lost. Safe to use from many threads.
class Health {
 public:
  explicit Health(ComPtr<ID3D12Device> device) : device_(std::move(device)) {}

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  void MarkLost() { lost_.store(true, std::memory_order_release); }

  // True when the implementation itself says so; what it still has to do will not be done.
  bool IsRemoved() {
    if (SUCCEEDED(device_->GetDeviceRemovedReason())) return false;
    MarkLost();
    return true;
  }

  // ToStatus, and a look at the device when the call failed.
  absl::Status Check(HRESULT result, absl::string_view call) {
    if (SUCCEEDED(result)) return absl::OkStatus();
    if (IsDeviceLoss(result) || IsRemoved()) {
      MarkLost();
      return DeviceLostError();
    }
    return ToStatus(result, call);
  }

 private:
  const ComPtr<ID3D12Device> device_;
  std::atomic<bool> lost_{false};
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_HEALTH_H_
