// Reductions on the processor.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_PROGRAM_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_PROGRAM_H_

#include <memory>

#include "kernels/cpu/cpu_program.h"
#include "kernels/operators/reduction/fold_output.h"
#include "kernels/operators/reduction/fold_work.h"

namespace opmill {

// `work` must be InMemoryOrder.
std::unique_ptr<CpuProgram> MakeFoldProgram(FoldWork work, std::unique_ptr<FoldOutput> output);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_PROGRAM_H_
