#include <vector>

#include "kernels/operators/lowering.h"
#include "kernels/operators/window/pooling_desc.h"

namespace opmill {
namespace {

using enum ElementWiseOp;

// |x|^p
std::vector<MapStep> PowerOf(uint32_t p) {
  if (p == 1) return {{kAbs, {0}}};
  if (p == 2) return {{kMultiply, {0, 0}}};
  return {{kAbs, {0}}, {kConstantPow, {1}, {static_cast<float>(p)}}};
}

}  // namespace

// The sum over a window is its mean with padding times the number of elements.
Program LowerLpPooling(const OperatorDesc& validated) {
  Lowering to(validated);
  const uint32_t p = validated.number("p");
  const std::vector<WindowDim> windows = WindowsOf(validated);
  const TensorDesc means = {DataType::kFloat32, validated.outputs[0]->sizes, {}};
  const Operand powers = to.Map(validated.inputs[0].sizes, {to.Input(0)}, PowerOf(p));
  const Operand mean = to.Add(
      DescribeAveragePooling(powers.tensor, means, windows, /*include_padding=*/true), powers);
  float count = 1;
  for (const WindowDim& dim : windows) count *= static_cast<float>(dim.window);
  std::vector<MapStep> steps = {{kLinear, {0}, {count, 0}}};
  if (p == 2) steps.push_back({kSqrt, {1}});
  if (p > 2) steps.push_back({kConstantPow, {1}, {1 / static_cast<float>(p)}});
  return to.Return({mean}, steps);
}

}  // namespace opmill
