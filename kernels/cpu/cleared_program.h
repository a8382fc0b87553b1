#ifndef OPMILL_KERNELS_CPU_CLEARED_PROGRAM_H_
#define OPMILL_KERNELS_CPU_CLEARED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/cpu_program.h"

namespace opmill {

// Prepends a phase to `program` that sets all bytes of the outputs to zero.
std::unique_ptr<CpuProgram> MakeClearedProgram(std::unique_ptr<const CpuProgram> program,
                                               std::vector<uint64_t> output_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_CLEARED_PROGRAM_H_
