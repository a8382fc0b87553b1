#include "kernels/engine/device.h"

#include <future>
#include <memory>
#include <utility>

namespace opmill {

absl::StatusOr<RunStatistics> Device::RunAndWait(std::shared_ptr<const CompiledProgram> compiled,
                                                 Bindings bindings) {
  // Shared with the callback, which may still be returning from set_value() when this thread wakes
  // and returns.
  auto answer = std::make_shared<std::promise<absl::StatusOr<RunStatistics>>>();
  Run(std::move(compiled), std::move(bindings), /*abandoned=*/{},
      [answer](absl::StatusOr<RunStatistics> result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

}  // namespace opmill
