// Translates descriptors to work for the processor's kernels. No other code in this folder reads
// descriptors.
#ifndef OPMILL_KERNELS_CPU_CPU_OPERATORS_H_
#define OPMILL_KERNELS_CPU_CPU_OPERATORS_H_

#include <memory>

#include "kernels/cpu/cpu_program.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// Not of a lowered operator, unless CanSlice holds.
std::unique_ptr<const CpuProgram> MakeCpuProgram(const OperatorDesc& validated);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_CPU_OPERATORS_H_
