// Whether a device has been lost.
#ifndef OPMILL_KERNELS_D3D12_HEALTH_H_
#define OPMILL_KERNELS_D3D12_HEALTH_H_

#include <atomic>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/d3d12/hresult.h"
#include "kernels/d3d12/platform.h"

namespace opmill {

// Shared by all code that calls the device. A lost device stays lost. Thread-safe.
class Health {
 public:
  // `on_loss` is called once, on the thread that detects the loss, and must not block.
  Health(ComPtr<ID3D12Device> device, std::function<void()> on_loss)
      : device_(std::move(device)), on_loss_(std::move(on_loss)) {}

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  void MarkLost() {
    if (!lost_.exchange(true, std::memory_order_acq_rel)) on_loss_();
  }

  // Work in flight will not be completed.
  void MarkRemoved() {
    removed_.store(true, std::memory_order_release);
    MarkLost();
  }

  // True if the Direct3D implementation reports the removal now, or did before. vkd3d reports it
  // only as the result of a call.
  bool IsRemoved() {
    if (removed_.load(std::memory_order_acquire)) return true;
    if (SUCCEEDED(device_->GetDeviceRemovedReason())) return false;
    MarkRemoved();
    return true;
  }

  // Like ToStatus, and checks for a device loss if the call failed.
  absl::Status Check(HRESULT result, absl::string_view call) {
    if (SUCCEEDED(result)) return absl::OkStatus();
    if (IsDeviceLoss(result)) MarkRemoved();
    if (IsRemoved()) return DeviceLostError();
    return ToStatus(result, call);
  }

 private:
  const ComPtr<ID3D12Device> device_;
  const std::function<void()> on_loss_;
  std::atomic<bool> removed_{false};
  std::atomic<bool> lost_{false};
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_HEALTH_H_
