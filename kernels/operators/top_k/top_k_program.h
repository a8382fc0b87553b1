// top_k on the processor.
#ifndef OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PROGRAM_H_
#define OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/strided_walk.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

struct TopKWork {
  DataType type = DataType::kFloat32;
  bool largest = true;
  uint32_t index_bytes = 4;
  uint64_t k = 1;
  std::vector<WorkDim> kept;
  WorkDim axis;
};

std::unique_ptr<const CpuProgram> MakeTopKProgram(TopKWork work);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_PROGRAM_H_
