// Whether a device still answers, known to all who call it.
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

// A lost device stays lost. Safe to use from many threads.
class Health {
 public:
  // `on_loss` is called once, by whoever finds out, and must not block.
  Health(ComPtr<ID3D12Device> device, std::function<void()> on_loss)
      : device_(std::move(device)), on_loss_(std::move(on_loss)) {}

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  void MarkLost() {
    if (!lost_.exchange(true, std::memory_order_acq_rel)) on_loss_();
  }

  // What the device still has to do will not be done.
  void MarkRemoved() {
    removed_.store(true, std::memory_order_release);
    MarkLost();
  }

  // True when the implementation itself says so, or has said so: vkd3d tells by what a call
  // returns.
  bool IsRemoved() {
    if (removed_.load(std::memory_order_acquire)) return true;
    if (SUCCEEDED(device_->GetDeviceRemovedReason())) return false;
    MarkRemoved();
    return true;
  }

  // ToStatus, and a look at the device when the call failed.
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
