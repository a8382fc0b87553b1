// Divides the inputs that the server reads into parts, which several threads copy.
#ifndef OPMILL_SERVER_EXECUTION_INPUT_COPY_H_
#define OPMILL_SERVER_EXECUTION_INPUT_COPY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"
#include "server/execution/input_source.h"

namespace opmill {

// Threads take the parts in their order and copy them in any order. Thread-safe, without locks.
class InputCopy {
 public:
  // Takes about a millisecond to copy.
  static constexpr size_t kPartBytes = size_t{4} << 20;
  // Of one execution: others want to compile.
  static constexpr size_t kMostThreads = 4;

  struct Part {
    size_t input = 0;
    uint64_t offset = 0;
    size_t size = 0;
  };

  // Has the inputs whose source has a `read`; those past the end of `sources` have none.
  InputCopy(absl::Span<const InputSource> sources, absl::Span<const TensorDesc> inputs);

  // How many threads should copy; 0 if there is nothing to copy.
  size_t threads() const;
  // The next part; nullopt if all have been taken.
  std::optional<Part> Next();
  // True if this was the last part of its input.
  bool IsLast(const Part& copied) { return --left_[copied.input] == 0; }

 private:
  std::vector<Part> parts_;
  std::atomic<size_t> next_ = 0;
  const std::unique_ptr<std::atomic<size_t>[]> left_;  // parts of each input
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_INPUT_COPY_H_
