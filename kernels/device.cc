#include "kernels/device.h"

#include "absl/synchronization/notification.h"

namespace opmill {

absl::StatusOr<RunStatistics> Device::RunAndWait(std::shared_ptr<const CompiledOperator> compiled,
                                                 Bindings bindings) {
  // Shared with the callback: it may still be leaving Notify() when this thread wakes and returns.
  struct Answer {
    absl::Notification done;
    absl::StatusOr<RunStatistics> result = absl::UnknownError("The run has not ended.");
  };
  auto answer = std::make_shared<Answer>();
  Run(std::move(compiled), std::move(bindings), [answer](absl::StatusOr<RunStatistics> result) {
    answer->result = std::move(result);
    answer->done.Notify();
  });
  answer->done.WaitForNotification();
  return std::move(answer->result);
}

}  // namespace opmill
