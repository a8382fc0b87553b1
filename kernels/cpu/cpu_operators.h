// Translates descriptors to work for the processor's kernels. No other code in this folder reads
// descriptors.
#ifndef OPMILL_KERNELS_CPU_CPU_OPERATORS_H_
#define OPMILL_KERNELS_CPU_CPU_OPERATORS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/cpu_program.h"
#include "kernels/engine/device.h"

namespace opmill {

struct CpuOperator {
  std::unique_ptr<const CpuProgram> program;
  std::vector<uint64_t> input_bytes;
  std::vector<uint64_t> output_bytes;
};

CpuOperator MakeCpuOperator(const OperatorDesc& validated);

// Finds the buffers of a run. Returns InvalidArgument if one is missing or too small; the inputs
// must have `input_bytes`.
absl::StatusOr<RunBuffers> FindBuffers(const CpuOperator& cpu_operator,
                                       absl::Span<const uint64_t> input_bytes,
                                       const Bindings& bindings);

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_CPU_OPERATORS_H_
