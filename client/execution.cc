#include "client/execution.h"

#include <utility>

namespace opmill {

size_t TotalBytes(absl::Span<const InputBytes> inputs) {
  size_t bytes = 0;
  for (const InputBytes& input : inputs) bytes += input.size;
  return bytes;
}

absl::Status MemorySink::Start(const v1::ExecutionStarted& started) {
  outputs_.clear();
  for (int i = 0; i < started.outputs_size(); ++i) {
    OutputTensor output{started.outputs(i), {}};
    output.bytes.resize(started.output_bytes(i));
    outputs_.push_back(std::move(output));
  }
  return absl::OkStatus();
}

absl::Status MemorySink::Write(size_t output, uint64_t offset, const Payload& bytes) {
  bytes.CopyTo(outputs_[output].bytes.data() + offset);
  return absl::OkStatus();
}

}  // namespace opmill
