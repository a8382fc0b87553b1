// The processor's kernels of element-wise operations, on contiguous arrays. FLOAT16 is computed as
// FLOAT32.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/operators/elementwise/element_wise.h"

namespace opmill {

struct MapArguments {
  const void* operands[3] = {};
  void* result = nullptr;
  size_t count = 0;
  uint64_t parameters[2] = {};
};
using MapKernel = void (*)(const MapArguments&);

// Of FLOAT32 operands; the result is FLOAT32, or for truth values UINT8 or UINT32.
MapKernel FloatMapKernel(ElementWiseOp op, DataType result);
// Of integers, and of casts between any types.
MapKernel IntegerMapKernel(ElementWiseOp op, DataType type, DataType result);
MapKernel CastMapKernel(DataType from, DataType to);

void FloatsFromHalves(const uint16_t* halves, float* floats, size_t count);
void HalvesFromFloats(const float* floats, uint16_t* halves, size_t count);

// One operation of the accumulator machine, on the running value and another operand.
struct FusedStep {
  enum class Operands : uint32_t { kValueValue, kValueInput, kInputValue };
  ElementWiseOp op = ElementWiseOp::kAdd;
  Operands operands = Operands::kValueValue;
  size_t input = 0;
  float parameters[2] = {};
};
struct FusedInput {
  const float* elements = nullptr;
  size_t step = 1;  // 0: the first element stands for all
};
bool CanFuse(ElementWiseOp op);
// The first value is input `first`. The value stays in registers from step to step; the bits are
// those of the kernels above, one after another.
void RunFused(absl::Span<const FusedStep> steps, absl::Span<const FusedInput> inputs, size_t first,
              float* result, size_t count);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_KERNELS_H_
