// A reduction as plain data.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_WORK_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_WORK_H_

#include <utility>

#include "kernels/dims/iteration_space.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {

struct FoldWork {
  ReduceFunction function = ReduceFunction::kSum;
  DataType type = DataType::kFloat32;
  bool is_batched =
      false;               // as in OperatorDesc: how a result is rounded depends on `reduced` alone
  bool last_wins = false;  // of equal extremes
  bool nan_is_last = false;  // of kArgMin: no number follows a NaN
  SpaceDims kept;
  SpaceDims reduced;  // in the order that positions count
};

// In the order of memory, as far as positions allow, and merged.
inline FoldWork InMemoryOrder(FoldWork work) {
  SortByStride(work.kept, kInputTensor);
  if (!GivesIndices(work.function)) SortByStride(work.reduced, kInputTensor);
  MergeDims(work.kept);
  MergeDims(work.reduced);
  return work;
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_WORK_H_
