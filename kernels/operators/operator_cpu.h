// The programs of operators for the processor.
#ifndef OPMILL_KERNELS_OPERATORS_OPERATOR_CPU_H_
#define OPMILL_KERNELS_OPERATORS_OPERATOR_CPU_H_

#include <memory>

#include "kernels/cpu/cpu_program.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// Whether the operator has kernels for the processor, so that it need not be lowered.
bool HasCpuKernels(const OperatorDesc& desc);
// Of an operator that has.
std::unique_ptr<CpuProgram> MakeCpuProgram(const OperatorDesc& validated);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_OPERATOR_CPU_H_
