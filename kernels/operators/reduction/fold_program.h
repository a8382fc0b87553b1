// Reductions on the processor.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_PROGRAM_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/strided_walk.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {

// A reduction, or a hardmax, which uses kArgMax to find where the ones go.
struct FoldWork {
  ReduceFunction function = ReduceFunction::kSum;
  DataType type = DataType::kFloat32;
  bool last_wins = false;        // of equal extremes
  bool nan_is_last = false;      // of kArgMin: no number follows a NaN
  bool is_hardmax = false;       // `reduced` has output strides then
  bool is_top_1 = false;         // values, and positions into the second output
  uint32_t result_bytes = 4;     // of an element of the output
  std::vector<WorkDim> kept;     // any order
  std::vector<WorkDim> reduced;  // in the order that positions count
};

std::unique_ptr<const CpuProgram> MakeFoldProgram(FoldWork work);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_PROGRAM_H_
