#include "kernels/operators/operator_cpu.h"

#include <utility>
#include <vector>

#include "kernels/cpu/cleared_program.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"

namespace opmill {

#define OPMILL_LOWERED_FAMILY(Name)
#define OPMILL_LOWERED_FAMILY_WITH_CPU(Name) OPMILL_FAMILY(Name)
#define OPMILL_FAMILY(Name) std::unique_ptr<CpuProgram> Cpu##Name(const OperatorDesc& desc);
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY

namespace {

using CpuPlanner = std::unique_ptr<CpuProgram> (*)(const OperatorDesc&);
constexpr CpuPlanner kCpuPlanners[] = {
#define OPMILL_LOWERED_FAMILY(Name) nullptr,
#define OPMILL_LOWERED_FAMILY_WITH_CPU(Name) OPMILL_FAMILY(Name)
#define OPMILL_FAMILY(Name) &Cpu##Name,
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY
};

}  // namespace

bool HasCpuKernels(const OperatorDesc& desc) {
  return kCpuPlanners[static_cast<size_t>(desc.schema->family)] != nullptr;
}

std::unique_ptr<CpuProgram> MakeCpuProgram(const OperatorDesc& validated) {
  std::unique_ptr<CpuProgram> program =
      kCpuPlanners[static_cast<size_t>(validated.schema->family)](validated);
  bool writes_all = program->fills_outputs();
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc& output : OutputsOf(validated)) {
    output_bytes.push_back(RequiredBytes(output));
    writes_all = writes_all && IsPacked(output) && SpannedBytes(output) % 4 == 0;
  }
  if (writes_all) return program;
  return MakeClearedProgram(std::move(program), std::move(output_bytes));
}

}  // namespace opmill
