// The kernels of reductions for the current instruction set.
//
// A state is a partial result. It consists of several numbers. The states of `width` results are
// stored as planes, one plane per number. Widths are rounded up to kStateStep, so that kernels may
// load and store whole vectors.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {

inline constexpr size_t kStateStep = 64;  // elements of the longest vector of bytes
constexpr size_t PaddedWidth(size_t width) {
  return (width + kStateStep - 1) / kStateStep * kStateStep;
}
// The maximum size of a row for `columns`.
inline constexpr size_t kMaxColumnBytes = 16384;

// FoldProgram folds rows in pieces of this size, so that what arrives of a row can be folded before
// the rest: calls of `row` for the pieces give other bits than one for the row.
inline constexpr size_t kRowPieceBytes = 32768;
// `columns` folds groups of this many rows. Calls for one group each give the same bits as a call
// for all, and each group is in the cache when it is folded.
inline constexpr size_t kRowGroup = 8;

struct FoldKernels {
  size_t state_bytes = 0;
  size_t hot_bytes = 0;  // of a state, that `columns` reads and writes most
  // Sets `width` states to the identity. Positions of arg-reductions start at `position`.
  void (*init)(void* states, size_t width, uint64_t position) = nullptr;
  // Folds `count` contiguous elements into state `at`.
  void (*row)(const void* elements, size_t count, uint64_t position, void* states, size_t width,
              size_t at) = nullptr;
  // Folds element i of every row into state i. Row r has position `position` + r.
  void (*columns)(const void* const* rows, size_t row_count, uint64_t position, void* states,
                  size_t width) = nullptr;
  // Merges `from` into `into`. The elements of `from` must follow those of `into`.
  void (*merge)(void* into, const void* from, size_t width) = nullptr;
  // Writes the results: elements of the input's type, or UINT32 positions.
  void (*finish)(const void* states, size_t width, uint64_t count, void* results) = nullptr;
};

FoldKernels SumKernels(ReduceFunction function, DataType type);
FoldKernels ExtremeKernels(ReduceFunction function, DataType type);
FoldKernels LogSumExpKernels(DataType type);
// NaNs come first, unless `nan_is_last`, which only the first least element (kArgMin) supports.
FoldKernels ArgKernels(ReduceFunction function, DataType type, bool last_wins, bool nan_is_last);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_KERNELS_H_
