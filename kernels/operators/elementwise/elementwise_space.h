// The walk of an operator that computes each element of its output from the elements of two inputs
// at the same coordinate: dimensions collapsed as far as all strides allow, and cut where a tensor
// reaches past a view.
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
  // The offset of the farthest element from the first one.
  uint64_t Span(size_t tensor) const;
};

ElementwiseSpace MakeElementwiseSpace(const TensorDesc& a, const TensorDesc& b,
                                      const TensorDesc& output);

// True when rows can be computed in vectors of so many elements: the output's elements are
// neighbours, each input's are neighbours or all the same one, and rows of neighbours start at
// vectors. What is between the end of a row and the end of its last vector is a gap of the output.
bool WalksVectors(const ElementwiseSpace& space, uint64_t vector);

// Parts of the space that cover every element once; each spans less than `limits` of every tensor.
// Rows are cut at multiples of `row_step`, which the limits are no smaller than. A list of
// kMaxSlices is incomplete.
std::vector<ElementwiseSpace> Slice(const ElementwiseSpace& space,
                                    const PerTensor<uint64_t>& limits, uint64_t row_step);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENTWISE_SPACE_H_
