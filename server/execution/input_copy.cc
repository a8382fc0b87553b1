#include "server/execution/input_copy.h"

#include <algorithm>

namespace opmill {

InputCopy::InputCopy(absl::Span<const InputSource> sources, absl::Span<const TensorDesc> inputs)
    : left_(new std::atomic<size_t>[inputs.size()]()) {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].read == nullptr) continue;
    const uint64_t bytes = SpannedBytes(inputs[i]);
    for (uint64_t offset = 0; offset < bytes; offset += kPartBytes) {
      parts_.push_back({i, offset, std::min<size_t>(kPartBytes, bytes - offset)});
      ++left_[i];
    }
  }
}

size_t InputCopy::threads() const { return std::min(parts_.size(), kMostThreads); }

std::optional<InputCopy::Part> InputCopy::Next() {
  const size_t index = next_++;
  if (index >= parts_.size()) return std::nullopt;
  return parts_[index];
}

}  // namespace opmill
