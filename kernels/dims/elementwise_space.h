// The iteration space of an operator that computes each output element from the elements of its
// inputs at the same coordinate. Dimensions are merged as far as all strides allow, and sliced
// where a tensor exceeds a view.
#ifndef OPMILL_KERNELS_DIMS_ELEMENTWISE_SPACE_H_
#define OPMILL_KERNELS_DIMS_ELEMENTWISE_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/descriptor/operator_limits.h"
#include "kernels/dims/dims.h"

namespace opmill {

// The tensors of the space: the inputs of an operator, of which absent ones have strides of 0, and
// the output.
inline constexpr size_t kTensorOutput = kMaxInputs;
inline constexpr size_t kElementwiseTensors = kTensorOutput + 1;

using ElementwiseOffsets = Offsets<kElementwiseTensors>;

struct ElementwiseSpace {
  using Dim = StridedDim<kElementwiseTensors>;

  Dims<kElementwiseTensors> dims;  // outermost first in the output; never empty
  ElementwiseOffsets bases = {};   // of the first elements

  const Dim& row() const { return dims.back(); }
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
std::vector<ElementwiseSpace> SliceElementwise(const ElementwiseSpace& space,
                                               const ElementwiseOffsets& limits, uint64_t row_step);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DIMS_ELEMENTWISE_SPACE_H_
