#include "kernels/engine/device.h"

#include <future>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/base/errors.h"

namespace opmill {

absl::Status CheckBindings(const Bindings& bindings, absl::Span<const uint64_t> input_bytes,
                           absl::Span<const uint64_t> output_bytes) {
  const auto check = [](absl::string_view name, absl::Span<const std::shared_ptr<HostBuffer>> bound,
                        absl::Span<const uint64_t> needed) {
    if (bound.size() != needed.size()) {
      return absl::InvalidArgumentError(absl::StrCat("The program has ", needed.size(), " ", name,
                                                     ", but ", bound.size(), " are given."));
    }
    for (size_t i = 0; i < bound.size(); ++i) {
      const uint64_t size = bound[i] == nullptr ? 0 : bound[i]->bytes().size();
      if (bound[i] == nullptr || size < needed[i]) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, "[", i, "] has ", size, " bytes, and needs ", needed[i], "."));
      }
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(check("inputs", bindings.inputs, input_bytes));
  return check("outputs", bindings.outputs, output_bytes);
}

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
