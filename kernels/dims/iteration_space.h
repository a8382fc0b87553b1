// The iteration space of an operator: kept dimensions, each step along which is another result, and
// reduced dimensions, which are folded into one result. Collapsed and sliced before kernels are
// chosen.
#ifndef OPMILL_KERNELS_DIMS_ITERATION_SPACE_H_
#define OPMILL_KERNELS_DIMS_ITERATION_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// Strides are in elements: of the input, of the first output, and of top_k's indices or hardmax's
// positions.
struct SpaceDim {
  uint64_t size = 1;
  uint64_t input_stride = 0;
  uint64_t output_stride = 0;
  uint64_t index_stride = 0;
  friend bool operator==(const SpaceDim&, const SpaceDim&) = default;
};

// kAny: the result does not depend on the order of the elements, so dimensions may be reordered to
// follow memory. kRowMajor: positions count in dimension order.
enum class ReducedOrder { kAny, kRowMajor };

struct IterationSpace {
  std::vector<SpaceDim> kept;     // outermost first, no sizes of 1
  std::vector<SpaceDim> reduced;  // the same
  uint64_t input_base = 0;        // offsets of position 0, in elements
  uint64_t output_base = 0;
  uint64_t output2_base = 0;
  uint64_t index_base = 0;  // row-major position within the complete reduction
  ReducedOrder order = ReducedOrder::kRowMajor;

  uint64_t results() const;      // product of the kept sizes
  uint64_t index_count() const;  // product of the reduced sizes
};

// `index` is top_k's second output, hardmax's positions, or null. Output strides are set for the
// reduced dimensions too, because hardmax and top_k write along them.
IterationSpace MakeIterationSpace(const TensorDesc& input, const std::vector<uint32_t>& axes,
                                  const TensorDesc& output, const TensorDesc* index,
                                  ReducedOrder order);

// The largest offset that an iteration over `dims` reaches.
uint64_t InputSpan(const std::vector<SpaceDim>& dims);
uint64_t OutputSpan(const std::vector<SpaceDim>& dims);
uint64_t IndexSpan(const std::vector<SpaceDim>& dims);

struct SliceLimits {
  uint64_t input_elements = 0;  // the most that a slice may span
  uint64_t output_elements = 0;
  uint64_t index_elements = ~uint64_t{0};
  uint64_t results = ~uint64_t{0};
  uint64_t reduced_elements = uint64_t{1} << 31;  // per result
};

// The limit on slices. A list of this length is incomplete, and the operator must be refused.
inline constexpr size_t kMaxSlices = size_t{1} << 17;

// Slices the space into parts that cover every result once, each within the limits of results and
// outputs.
std::vector<IterationSpace> SliceKept(const IterationSpace& space, const SliceLimits& limits);

// Slices the reduction of every result, in order, into parts whose input span, including the kept
// dimensions, is within the limits.
std::vector<IterationSpace> SliceReduced(const IterationSpace& space, const SliceLimits& limits);

// At most so many parts of a reduction that spans so many elements: repeated halving leaves parts
// of at least a quarter of the limit.
constexpr uint64_t MostParts(uint64_t span, uint64_t limit) { return CeilDiv(span, limit / 4); }

// The largest power of two, at most `vector`, that divides every element offset of the input, or of
// the output, when the dimension `skip` is walked vector by vector.
uint64_t InputAlignment(const IterationSpace& space, const SpaceDim* skip, uint64_t vector);
uint64_t OutputAlignment(const IterationSpace& space, const SpaceDim* skip, uint64_t vector);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DIMS_ITERATION_SPACE_H_
