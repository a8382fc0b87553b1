#include <vector>

#include "kernels/operators/lowering.h"
#include "kernels/operators/softmax/softmax_desc.h"

namespace opmill {

Program LowerSoftmax(const OperatorDesc& validated) {
  using enum ElementWiseOp;
  Lowering to(validated);
  const std::vector<uint32_t>& axes = validated.list("axes");
  const Operand x = to.Input(0);
  const std::vector<uint32_t>& sizes = x.tensor.sizes;
  const Operand maximum = to.Reduce(ReduceFunction::kMax, x, axes);
  if (validated.schema == &kLogSoftmaxSchema) {
    const Operand below = to.Map(sizes, {x, maximum}, {{kSubtract, {0, 1}}});
    const Operand sum = to.Reduce(ReduceFunction::kLogSumExp, below, axes);
    return to.Return({below, sum}, {{kSubtract, {0, 1}}});
  }
  const Operand power = to.Map(sizes, {x, maximum}, {{kSubtract, {0, 1}}, {kExp, {2}}});
  const Operand sum = to.Reduce(ReduceFunction::kSum, power, axes);
  return to.Return({power, sum}, {{kDivide, {0, 1}}});
}

}  // namespace opmill
