// The inputs and outputs of an execution in shared memory.
#ifndef OPMILL_SERVER_SHARED_MEMORY_SHARED_TENSORS_H_
#define OPMILL_SERVER_SHARED_MEMORY_SHARED_TENSORS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/tensor.h"
#include "server/execution/execution.h"
#include "server/execution/executor.h"
#include "server/shared_memory/shared_memory.h"

namespace opmill {

// InvalidArgument with the field `byte_size` if the range is too small for the tensor; for an input
// also if it is too large. `field` is the path of the range: "shared_inputs[0]".
absl::Status CheckInputRange(const TensorDesc& input, const SharedRange& range,
                             absl::string_view field);
absl::Status CheckOutputRange(const TensorDesc& output, const SharedRange& range,
                              absl::string_view field);

// Reads all inputs from `ranges`, which have passed CheckInputRange, instead of Executor::Receive.
// Errors name the range by `field` and its index.
void ReceiveShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                   std::vector<SharedRange> ranges, std::string field);

// Writes all outputs of an execution that is ready to `ranges`, which have passed CheckOutputRange,
// then calls `done` on a thread of the executor. If a range cannot be written, the execution has
// ended with an error by then.
void WriteShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                 std::vector<SharedRange> ranges, std::string field, std::function<void()> done);

}  // namespace opmill

#endif  // OPMILL_SERVER_SHARED_MEMORY_SHARED_TENSORS_H_
