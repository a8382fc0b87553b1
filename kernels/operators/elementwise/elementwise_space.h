// The iteration space of an operator that computes each output element from the elements of two
// inputs at the same coordinate. Dimensions are collapsed as far as all strides allow, and sliced
// where a tensor exceeds a view.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENTWISE_SPACE_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENTWISE_SPACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/descriptor/tensor.h"

namespace opmill {

inline constexpr size_t kTensorA = 0, kTensorB = 1, kTensorOutput = 2;

template <typename T>
using PerTensor = std::array<T, 3>;

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

ElementwiseSpace MakeElementwiseSpace(const TensorDesc& a, const TensorDesc& b,
                                      const TensorDesc& output);

// True if rows can be computed in vectors of this many elements: the elements of the output are
// contiguous, those of each input are contiguous or a single repeated element, and contiguous rows
// start at vectors. The bytes between the end of a row and the end of its last vector are a gap of
// the output.
bool WalksVectors(const ElementwiseSpace& space, uint64_t vector);

// Slices the space into parts that cover every element once and span less than `limits` of each
// tensor. Rows are cut at multiples of `row_step`, which must not exceed the limits. A list of
// kMaxSlices entries is incomplete.
std::vector<ElementwiseSpace> Slice(const ElementwiseSpace& space,
                                    const PerTensor<uint64_t>& limits, uint64_t row_step);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENTWISE_SPACE_H_
