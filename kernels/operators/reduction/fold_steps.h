// Folds while the input arrives. Computes the same bits as FoldProgram does from memory.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_STEPS_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/cpu/cpu_program.h"
#include "kernels/operators/reduction/fold_kernels.h"
#include "kernels/operators/reduction/fold_output.h"
#include "kernels/operators/reduction/fold_work.h"

namespace opmill {

// A fold whose input and output elements are adjacent. The input consists of lines. A line is a row
// with one result, or (columns) `count` rows of `width` elements, where element i of each row
// belongs to result i.
struct FoldLayout {
  uint32_t element_bytes = 4;
  bool folds_columns = false;
  uint64_t lines = 1;
  uint64_t width = 1;  // results of a line
  uint64_t count = 1;  // elements of one reduction
  uint64_t tile = 1;   // results of a line whose states are side by side (columns)
  uint64_t split = 1;  // elements of a reduction that are folded before they are merged
};

// The layout of work that FoldProgram reads in rows or columns. Nullopt if elements are not
// adjacent, or if the output holds something else.
std::optional<FoldLayout> LayoutOf(const FoldWork& work, FoldOutput::Holds holds,
                                   bool folds_columns, uint64_t tile, uint64_t split);

// The most bytes that a step takes, and the bytes of the states that the steps share.
uint64_t FoldStepBytes(const FoldLayout& layout);
uint64_t FoldStateBytes(const FoldLayout& layout, const FoldKernels& kernels);

// All but `buffers` must outlive the steps. The scratch has FoldStateBytes.
std::unique_ptr<CpuSteps> MakeFoldSteps(const FoldLayout& layout, const FoldKernels& kernels,
                                        const FoldOutput& output, const RunBuffers& buffers);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_STEPS_H_
