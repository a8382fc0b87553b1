// The event that a fence signals.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_EVENT_H_
#define OPMILL_KERNELS_D3D12_QUEUE_EVENT_H_

#include "absl/time/time.h"
#include "kernels/d3d12/platform.h"

namespace opmill {

// Auto-reset event. A signal after its destruction is harmless.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  HANDLE handle() const { return handle_; }
  bool Wait(absl::Duration timeout);  // false: timed out

 private:
  HANDLE handle_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_EVENT_H_
