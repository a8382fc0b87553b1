// The iteration space of an operator: kept dimensions, each step along which is another result, and
// reduced dimensions, which are folded into one result. Merged and sliced before kernels are
// chosen.
#ifndef OPMILL_KERNELS_DIMS_ITERATION_SPACE_H_
#define OPMILL_KERNELS_DIMS_ITERATION_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/dims/dims.h"

namespace opmill {

// The tensors of the space.
inline constexpr size_t kInputTensor = 0;
inline constexpr size_t kOutputTensor = 1;
inline constexpr size_t kIndicesTensor = 2;  // top_k's second output

using SpaceDim = StridedDim<3>;
using SpaceDims = Dims<3>;
using SpaceWalk = Walk<3>;

// kAny: the result does not depend on the order of the elements, so dimensions may be reordered to
// follow memory. kRowMajor: positions count in dimension order.
enum class ReducedOrder { kAny, kRowMajor };

struct IterationSpace {
  SpaceDims kept;  // no sizes of 1
  SpaceDims reduced;
  Offsets<3> bases = {};        // of position 0
  uint64_t first_position = 0;  // row-major, within the complete reduction
  ReducedOrder order = ReducedOrder::kRowMajor;

  uint64_t results() const { return CountOf(kept); }
  uint64_t position_count() const { return CountOf(reduced); }  // of each result
  uint64_t Span(size_t tensor) const { return SpanOf(kept, tensor) + SpanOf(reduced, tensor); }
};

// Dimensions along `axes` are `reduced`, the others `kept`, in the order of the tensors. `indices`
// may be null. An output that is as long as the input along a reduced axis moves along it; others
// have a stride of 0 there.
IterationSpace SplitDims(const TensorDesc& input, const std::vector<uint32_t>& axes,
                         const TensorDesc& output, const TensorDesc* indices = nullptr);

// The same in the order of memory, as far as `order` allows, and merged.
IterationSpace MakeIterationSpace(const TensorDesc& input, const std::vector<uint32_t>& axes,
                                  const TensorDesc& output, const TensorDesc* indices,
                                  ReducedOrder order);

inline constexpr uint64_t kNoLimit = ~uint64_t{0};

struct SliceLimits {
  Offsets<3> elements = {kNoLimit, kNoLimit, kNoLimit};  // the most that a slice may span
  uint64_t results = kNoLimit;
  uint64_t positions = uint64_t{1} << 31;  // per result
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

// The largest power of two, at most `vector`, that divides every element offset in the tensor, when
// the dimension `skip` is walked vector by vector.
uint64_t AlignmentOf(const IterationSpace& space, size_t tensor, const SpaceDim* skip,
                     uint64_t vector);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DIMS_ITERATION_SPACE_H_
