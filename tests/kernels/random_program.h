#ifndef OPMILL_TESTS_KERNELS_RANDOM_PROGRAM_H_
#define OPMILL_TESTS_KERNELS_RANDOM_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "kernels/descriptor/tensor.h"
#include "kernels/program/program.h"
#include "tests/support/programs.h"

namespace opmill {

struct RandomProgramOptions {
  std::vector<DataType> types = {DataType::kFloat32, DataType::kFloat16, DataType::kInt32,
                                 DataType::kInt64, DataType::kUint8};
  uint32_t most_nodes = 12;
  uint64_t most_elements = 20'000;  // of an input
};

// Any operators over any values, with strides; values that several nodes read, outputs that later
// nodes read, and intermediates that none reads.
Program RandomProgram(uint64_t seed, const RandomProgramOptions& options = {});

std::vector<TensorBytes> RandomInputs(const Program& program, uint64_t seed);

}  // namespace opmill

#endif  // OPMILL_TESTS_KERNELS_RANDOM_PROGRAM_H_
