#ifndef OPMILL_KERNELS_CPU_INSTRUCTION_SET_H_
#define OPMILL_KERNELS_CPU_INSTRUCTION_SET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace opmill {

std::string InstructionSet();  // that the kernels use now: "AVX3", "SSE4"

// Those that the kernels are built for and this processor has, the best first.
std::vector<std::string> InstructionSets();
// What is compiled from here on uses this one. NotFound where there is none of the name.
absl::Status UseInstructionSetForTest(const std::string& name);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_INSTRUCTION_SET_H_
