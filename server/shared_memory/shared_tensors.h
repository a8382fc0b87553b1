// The inputs and outputs of an execution in shared memory.
#ifndef OPMILL_SERVER_SHARED_MEMORY_SHARED_TENSORS_H_
#define OPMILL_SERVER_SHARED_MEMORY_SHARED_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"
#include "server/execution/execution.h"
#include "server/execution/executor.h"
#include "server/shared_memory/shared_memory.h"

namespace opmill {

SharedMemoryCaller SharedMemoryCallerOf(const RequestOrigin& origin);

// One of them.
struct SharedTensor {
  size_t index = 0;  // among the inputs or outputs of the operator
  SharedRange range;
  std::string path;                     // in the request: "shared_inputs[0]"
  absl::string_view key_field = "key";  // below the path; a literal
};

// InvalidArgument with `field`, the path of the size, if the range is too small for the tensor; for
// an input also if it is too large.
absl::Status CheckInputRange(const TensorDesc& input, const SharedRange& range,
                             absl::string_view field);
absl::Status CheckOutputRange(const TensorDesc& output, const SharedRange& range,
                              absl::string_view field);

// InvalidArgument with the path of an output that overlaps another one.
absl::Status CheckNoOverlap(const std::vector<SharedTensor>& outputs);

// The source of an input that has passed CheckInputRange. Errors name the field of its key.
InputSource SourceOf(SharedTensor input);

// Writes outputs of an execution that is ready, which have passed CheckOutputRange, then calls
// `done` on a thread of the executor. If one cannot be written, the execution has ended with an
// error by then.
void WriteShared(Executor& executor, const std::shared_ptr<Execution>& execution,
                 std::vector<SharedTensor> outputs, std::function<void()> done);

}  // namespace opmill

#endif  // OPMILL_SERVER_SHARED_MEMORY_SHARED_TENSORS_H_
