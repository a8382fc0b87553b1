// A program as phases of tasks: those of its operators, one operator after the other. Lowered
// operators are replaced by theirs, or computed slice by slice.
#ifndef OPMILL_KERNELS_CPU_DEVICE_CPU_PLAN_H_
#define OPMILL_KERNELS_CPU_DEVICE_CPU_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/kept_constants.h"
#include "kernels/engine/buffers.h"
#include "kernels/engine/device.h"
#include "kernels/engine/program_report.h"
#include "kernels/program/placement.h"
#include "kernels/program/program.h"

namespace opmill {

struct CpuNode {
  std::vector<uint32_t> operators;  // that it computes: nodes of the lowered program
  std::unique_ptr<const CpuProgram> work;
  std::vector<ValuePlace> inputs;
  std::vector<ValuePlace> outputs;
  uint64_t scratch_offset = 0;  // in the arena
};

struct CpuPhase {
  size_t node = 0;
  size_t phase = 0;  // of the node
  uint64_t tasks = 0;
};

struct CpuPlan {
  std::vector<CpuNode> nodes;
  std::vector<CpuPhase> phases;
  std::vector<uint64_t> input_bytes;
  std::vector<uint64_t> output_bytes;
  std::vector<std::shared_ptr<const ConstantData>> constants;
  uint64_t arena_bytes = 0;
  uint64_t live_bytes = 0;  // as in ProgramPlaces
};

// Of a validated program. It shares what its operators keep of constants with others by `kept`.
// After a stop of `abandoned` it is incomplete.
CpuPlan MakeCpuPlan(const Program& program, KeptConstants& kept,
                    const std::stop_token& abandoned = {});
CpuPlan MakeCpuPlan(const Program& program);  // shares nothing

// Of the program that it was made of.
ProgramReport ReportOf(const Program& program, const CpuPlan& plan);

// What the plan takes in addition to its tensors if `threads` threads compute its tasks.
uint64_t ScratchBytes(const CpuPlan& plan, uint64_t threads);
uint64_t CostBytes(const CpuPlan& plan);
// Constants, and what operators keep of them.
std::vector<SharedBytes> ConstantsOf(const CpuPlan& plan);
// As ProgramCost::rounding.
uint64_t RoundingOf(const CpuPlan& plan);

// The buffers of a node of the plan. `bindings` must have passed CheckBindings.
RunBuffers BuffersOf(const CpuPlan& plan, const CpuNode& node, const Bindings& bindings,
                     std::byte* arena);

// Computes the whole plan on this thread. `buffers` are those of the program, with its arena.
void RunPlan(const CpuPlan& plan, const RunBuffers& buffers);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_DEVICE_CPU_PLAN_H_
