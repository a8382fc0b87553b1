#include <utility>
#include <vector>

#include "kernels/operators/lowering.h"
#include "kernels/operators/normalization/normalization_desc.h"
#include "kernels/operators/window/pooling_desc.h"

namespace opmill {
namespace {

using enum ElementWiseOp;

// 1 / sqrt(factor * x + epsilon)
std::vector<MapStep> InverseDeviation(float factor, float epsilon) {
  return {{kLinear, {0}, {factor, epsilon}}, {kSqrt, {1}}, {kRecip, {2}}};
}

Program LowerMeanVariance(const OperatorDesc& desc) {
  Lowering to(desc);
  const std::vector<uint32_t>& axes = desc.list("axes");
  const std::vector<uint32_t>& sizes = desc.inputs[0].sizes;
  Operand x = to.Input(0);
  if (desc.number("use_mean") != 0) {
    // In FLOAT32, so that the mean is not rounded to FLOAT16.
    if (x.tensor.data_type != DataType::kFloat32) x = to.Map(sizes, {x}, {});
    const Operand mean = to.Reduce(ReduceFunction::kAverage, x, axes);
    x = to.Map(sizes, {x, mean}, {{kSubtract, {0, 1}}});
  }
  std::vector<Operand> factors;
  if (desc.number("use_variance") != 0) {
    if (x.tensor.data_type != DataType::kFloat32) x = to.Map(sizes, {x}, {});
    const Operand squares = to.Reduce(ReduceFunction::kSumSquare, x, axes);
    const uint64_t count = ElementCount(x.tensor) / ElementCount(squares.tensor);
    factors.push_back(
        to.Map(squares.tensor.sizes, {squares},
               InverseDeviation(1 / static_cast<float>(count), desc.value<float>("epsilon"))));
  }
  if (desc.inputs.size() > 1) factors.push_back(to.Input(1));
  const bool has_bias = desc.inputs.size() > 2;

  std::vector<Operand> inputs = {x};
  inputs.insert(inputs.end(), factors.begin(), factors.end());
  if (has_bias) inputs.push_back(to.Input(2));
  std::vector<MapStep> steps;
  uint32_t value = 0;
  const auto next = [&] { return static_cast<uint32_t>(inputs.size() + steps.size()); };
  for (uint32_t i = 1; i <= factors.size(); ++i) {
    const uint32_t result = next();
    steps.push_back({kMultiply, {value, i}});
    value = result;
  }
  if (has_bias) steps.push_back({kAdd, {value, static_cast<uint32_t>(inputs.size() - 1)}});
  return to.Return(inputs, steps);
}

Program LowerBatch(const OperatorDesc& desc) {
  Lowering to(desc);
  const Operand variance = to.Input(2);
  const Operand factor =
      to.Map(variance.tensor.sizes, {variance}, InverseDeviation(1, desc.value<float>("epsilon")));
  return to.Return({to.Input(0), to.Input(1), factor, to.Input(3), to.Input(4)},
                   {{kSubtract, {0, 1}}, {kMultiply, {5, 2}}, {kMultiply, {6, 3}}, {kAdd, {7, 4}}});
}

// The mean of the squares of a window is that of average_pooling with padding: across channels, of
// the images {1, channels, height * width}.
Program LowerLocalResponse(const OperatorDesc& desc) {
  Lowering to(desc);
  const Operand x = to.Input(0);
  const std::vector<uint32_t>& sizes = x.tensor.sizes;
  const uint32_t local_size = desc.number("local_size");
  const WindowDim window = {
      .window = local_size, .start_padding = (local_size - 1) / 2, .end_padding = local_size / 2};
  const bool across = desc.number("cross_channel") != 0;
  Operand squares = to.Map(sizes, {x}, {{kMultiply, {0, 0}}});
  if (across) squares.tensor.sizes = {sizes[0], 1, sizes[1], sizes[2] * sizes[3]};
  Operand means = to.Add(
      DescribeAveragePooling(squares.tensor, squares.tensor,
                             {window, across ? WindowDim() : window}, /*include_padding=*/true),
      squares);
  means.tensor.sizes = sizes;
  // alpha / local_size times the sum
  const float alpha = desc.value<float>("alpha") * (across ? 1.0f : static_cast<float>(local_size));
  return to.Return({x, means}, {{kLinear, {1}, {alpha, desc.value<float>("bias")}},
                                {kConstantPow, {2}, {desc.value<float>("beta")}},
                                {kDivide, {0, 3}}});
}

}  // namespace

Program LowerNormalization(const OperatorDesc& validated) {
  if (validated.schema == &kMeanVarianceNormalizationSchema) return LowerMeanVariance(validated);
  if (validated.schema == &kBatchNormalizationSchema) return LowerBatch(validated);
  return LowerLocalResponse(validated);
}

}  // namespace opmill
