// A lowered operator that reduces over inner dimensions, slice by slice: its intermediates stay in
// the cache.
#ifndef OPMILL_KERNELS_CPU_DEVICE_SLICED_PROGRAM_H_
#define OPMILL_KERNELS_CPU_DEVICE_SLICED_PROGRAM_H_

#include <memory>

#include "kernels/cpu/cpu_program.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// Whether the operator can be computed so: it has axes, dimensions before them, and an output
// without gaps.
bool CanSlice(const OperatorDesc& validated);
// CanSlice must hold.
std::unique_ptr<CpuProgram> MakeSlicedProgram(const OperatorDesc& validated);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_DEVICE_SLICED_PROGRAM_H_
