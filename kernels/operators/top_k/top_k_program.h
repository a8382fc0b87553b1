// top_k on the processor.
#ifndef OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PROGRAM_H_
#define OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/dims/iteration_space.h"

namespace opmill {

struct TopKWork {
  DataType type = DataType::kFloat32;
  bool largest = true;
  uint32_t index_bytes = 4;
  SpaceDims kept;
  SpaceDim axis;   // of the input
  SpaceDim ranks;  // of the outputs
};

std::unique_ptr<CpuProgram> MakeTopKProgram(TopKWork work);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PROGRAM_H_
