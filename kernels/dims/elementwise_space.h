// The iteration space of an operator that computes each output element from the elements of its
// inputs at the same coordinate. Dimensions are collapsed as far as all strides allow, and sliced
// where a tensor exceeds a view.
#ifndef OPMILL_KERNELS_DIMS_ELEMENTWISE_SPACE_H_
#define OPMILL_KERNELS_DIMS_ELEMENTWISE_SPACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

inline constexpr size_t kTensorOutput = 8;

// The inputs, of which the last may be absent and have strides of 0, and the output.
template <typename T>
using PerTensor = std::array<T, kTensorOutput + 1>;

struct ElementwiseSpace {
  struct Dim {
    uint64_t size = 1;
    PerTensor<uint64_t> strides = {};  // in elements
    friend bool operator==(const Dim&, const Dim&) = default;
  };

  std::vector<Dim> dims;           // outermost first in the output; never empty
  PerTensor<uint64_t> bases = {};  // offsets of the first elements

  const Dim& row() const { return dims.back(); }
  uint64_t ElementCount() const;
  // The offset from the first element to the farthest one.
  uint64_t Span(size_t tensor) const;
};

ElementwiseSpace MakeElementwiseSpace(absl::Span<const TensorDesc> inputs,
                                      const TensorDesc& output);

// True if rows can be computed in groups of this many elements: the elements of the output are
// contiguous, those of each input are contiguous or a single repeated element, and contiguous rows
// start at groups. The bytes between the end of a row and the end of its last group are a gap of
// the output.
bool WalksGroups(const ElementwiseSpace& space, uint64_t group);

// Slices the space into parts that cover every element once and span less than `limits` of each
// tensor. Rows are cut at multiples of `row_step`, which must not exceed the limits. A list of
// kMaxSlices entries is incomplete.
std::vector<ElementwiseSpace> Slice(const ElementwiseSpace& space,
                                    const PerTensor<uint64_t>& limits, uint64_t row_step);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DIMS_ELEMENTWISE_SPACE_H_
