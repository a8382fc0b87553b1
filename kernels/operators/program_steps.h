// What computing a program moves, for reports: pure functions.
#ifndef OPMILL_KERNELS_OPERATORS_PROGRAM_STEPS_H_
#define OPMILL_KERNELS_OPERATORS_PROGRAM_STEPS_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/program_report.h"
#include "kernels/program/program.h"

namespace opmill {

// Steps that compute these nodes of a validated program, each node in at most one step. Phases are
// left to the device.
std::vector<ProgramStep> StepsOf(const Program& program,
                                 const std::vector<std::vector<uint32_t>>& nodes);
// The same with a step for each node.
std::vector<ProgramStep> StepsOf(const Program& program);

uint64_t BytesMoved(const std::vector<ProgramStep>& steps);  // read and written

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_PROGRAM_STEPS_H_
