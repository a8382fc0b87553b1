#ifndef OPMILL_KERNELS_CPU_TOP_K_PROGRAM_H_
#define OPMILL_KERNELS_CPU_TOP_K_PROGRAM_H_

#include <memory>

#include "kernels/cpu/cpu_program.h"

namespace opmill {

std::unique_ptr<const CpuProgram> MakeTopKProgram(TopKWork work);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_TOP_K_PROGRAM_H_
