#ifndef OPMILL_KERNELS_CPU_INSTRUCTION_SET_H_
#define OPMILL_KERNELS_CPU_INSTRUCTION_SET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace opmill {

std::string InstructionSet();  // that kernels use now: "AVX3", "SSE4"

// The instruction sets that the kernels are built for and this processor supports, best first.
std::vector<std::string> InstructionSets();
// Operators compiled after this call use the instruction set `name`. NotFound if it is unknown.
absl::Status UseInstructionSetForTest(const std::string& name);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_INSTRUCTION_SET_H_
