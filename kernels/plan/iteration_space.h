// The shape of an operator's work: kept dimensions, each step along which is another result, and
// reduced dimensions, which are folded into one. Collapsed and sliced before kernels are chosen.
#ifndef OPMILL_KERNELS_PLAN_ITERATION_SPACE_H_
#define OPMILL_KERNELS_PLAN_ITERATION_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/descriptor/tensor.h"

namespace opmill {

// Strides in elements of the input, the first output, and top_k's indices or hardmax's positions.
struct SpaceDim {
  uint64_t size = 1;
  uint64_t input_stride = 0;
  uint64_t output_stride = 0;
  uint64_t index_stride = 0;
  friend bool operator==(const SpaceDim&, const SpaceDim&) = default;
};

// kAny: the reduction does not see the order of its elements, so neighbours in memory may become
// neighbours in the walk. kRowMajor: positions count in dimension order.
enum class ReducedOrder { kAny, kRowMajor };

struct IterationSpace {
  std::vector<SpaceDim> kept;     // outermost first, no sizes of 1
  std::vector<SpaceDim> reduced;  // likewise
  uint64_t input_base = 0;        // offsets of position 0, in elements
  uint64_t output_base = 0;
  uint64_t output2_base = 0;
  uint64_t index_base = 0;  // row-major position inside the whole reduction
  ReducedOrder order = ReducedOrder::kRowMajor;

  uint64_t results() const;      // product of the kept sizes
  uint64_t index_count() const;  // product of the reduced sizes
};

// `index` is top_k's second output, hardmax's positions, or null. The reduced dimensions' output
// strides are kept too: hardmax and top_k write along them.
IterationSpace MakeIterationSpace(const TensorDesc& input, const std::vector<uint32_t>& axes,
                                  const TensorDesc& output, const TensorDesc* index,
                                  ReducedOrder order);

// The largest offset that a walk over `dims` adds.
uint64_t InputSpan(const std::vector<SpaceDim>& dims);
uint64_t OutputSpan(const std::vector<SpaceDim>& dims);
uint64_t IndexSpan(const std::vector<SpaceDim>& dims);

struct SliceLimits {
  uint64_t input_elements = 0;  // that one slice may span
  uint64_t output_elements = 0;
  uint64_t index_elements = ~uint64_t{0};
  uint64_t results = ~uint64_t{0};
  uint64_t reduced_elements = uint64_t{1} << 31;  // of one result
};

// Slicing ends here: a list this long is incomplete, and its operator is to be refused.
inline constexpr size_t kMaxSlices = size_t{1} << 17;

// Parts of the space that cover every result once, each within the limits of results and outputs.
std::vector<IterationSpace> SliceKept(const IterationSpace& space, const SliceLimits& limits);

// Parts of every result's reduction, in its order, each within the limit of the input's span
// together with the kept dimensions.
std::vector<IterationSpace> SliceReduced(const IterationSpace& space, const SliceLimits& limits);

// The largest power of two, up to a vector, that every element offset of the walk is a multiple of,
// when the dimension at `skip` is walked vector by vector.
uint64_t CommonAlignment(const IterationSpace& space, const SpaceDim* skip, uint64_t vector);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_ITERATION_SPACE_H_
