// Parts of a move, each within the limits of a dispatch.
#ifndef OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVE_SLICE_H_
#define OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVE_SLICE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dims/iteration_space.h"
#include "kernels/operators/movement/move.h"

namespace opmill {

struct MoveRange {
  uint64_t first = 0;
  uint64_t count = 1;
};

// Elements whose indices name positions outside of the ranges are left to other slices.
struct MoveSlice {
  Move move;
  std::vector<MoveRange> ranges;  // of move.indexed
};

// The first and the last element that a slice reaches in a tensor.
struct MoveExtent {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t span() const { return last - first; }
};
MoveExtent ExtentOf(const MoveSlice& slice, size_t tensor);

// Slices that together move every element once. ResourceExhausted if the coordinates of one index
// are farther apart than the limit. A list of kMaxSlices entries is incomplete.
absl::StatusOr<std::vector<MoveSlice>> SliceMove(const Move& move, const SliceLimits& limits);

// Makes as many adjacent elements as possible into one, of at most 16 bytes. Returns how many.
uint32_t Widen(Move& move, uint32_t element_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVE_SLICE_H_
