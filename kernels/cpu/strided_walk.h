// Iterates over the elements of several dimensions, and copies elements.
#ifndef OPMILL_KERNELS_CPU_STRIDED_WALK_H_
#define OPMILL_KERNELS_CPU_STRIDED_WALK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/base/rounding.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// A dimension, with its strides in elements.
struct WorkDim {
  uint64_t size = 1;
  uint64_t input = 0;
  uint64_t output = 0;
  uint64_t indices = 0;  // stride of top_k's second output
};

// Dimensions along `axes` go to `reduced`, the others to `kept`. Sizes of 1 are dropped.
void SplitDims(const TensorDesc& input, const TensorDesc& output, const TensorDesc* indices,
               const std::vector<uint32_t>& axes, std::vector<WorkDim>& kept,
               std::vector<WorkDim>& reduced);

uint64_t CountOf(const std::vector<WorkDim>& dims);
// Orders dimensions by their input stride, largest first.
bool IsOuter(const WorkDim& a, const WorkDim& b);
// Merges dimensions that can be iterated as one.
void MergeDims(std::vector<WorkDim>& dims);
void SortAndMerge(std::vector<WorkDim>& dims);

// Iterates in row-major order, starting at element `position`. `dims` must outlive the walk.
class Walk {
 public:
  Walk(const std::vector<WorkDim>& dims, uint64_t position);

  uint64_t input() const { return input_; }
  uint64_t output() const { return output_; }
  uint64_t indices() const { return indices_; }

  void Next() {
    for (size_t i = dims_.size(); i-- > 0;) {
      const WorkDim& dim = dims_[i];
      input_ += dim.input;
      output_ += dim.output;
      indices_ += dim.indices;
      if (++at_[i] < dim.size) return;
      input_ -= dim.input * dim.size;
      output_ -= dim.output * dim.size;
      indices_ -= dim.indices * dim.size;
      at_[i] = 0;
    }
  }

 private:
  const std::vector<WorkDim>& dims_;
  uint64_t at_[8] = {};
  uint64_t input_ = 0;
  uint64_t output_ = 0;
  uint64_t indices_ = 0;
};

// Where the elements from `position` on lie in the input.
void InputOffsets(const std::vector<WorkDim>& dims, uint64_t position,
                  absl::Span<uint64_t> offsets);

// The bits of 1.0 in FLOAT32 or FLOAT16.
constexpr uint32_t OneOf(uint32_t element_bytes) {
  return element_bytes == 4 ? 0x3F80'0000 : 0x3C00;
}

void CopyElement(std::byte* to, const std::byte* from, uint32_t element_bytes);

// packed[r][i] = input[rows[r] + columns[i]], rows `pitch` elements apart.
void Gather(const std::byte* input, std::byte* packed, absl::Span<const uint64_t> columns,
            absl::Span<const uint64_t> rows, uint64_t pitch, uint32_t element_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_STRIDED_WALK_H_
