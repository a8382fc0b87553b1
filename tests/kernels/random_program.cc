#include "tests/kernels/random_program.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/descriptor/validate.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/conformance/random.h"
#include "tests/conformance/values.h"

namespace opmill {
namespace {

std::vector<uint32_t> RandomSizes(Random& random, uint64_t most_elements) {
  constexpr uint32_t kSizes[] = {1, 2, 3, 5, 8, 16, 17, 33, 64, 129, 1000, 5001};
  std::vector<uint32_t> sizes(1 + random.Below(4));
  for (uint32_t& size : sizes) {
    do {
      size = random.Pick(kSizes);
    } while (size > std::max<uint64_t>(most_elements, 1));
    most_elements /= size;
  }
  random.Shuffle(sizes);
  return sizes;
}

// Packed, with dimensions in another order, or with gaps.
std::vector<uint32_t> RandomStrides(const std::vector<uint32_t>& sizes, Random& random) {
  if (!random.OneIn(4)) return {};
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (random.OneIn(2)) random.Shuffle(order);
  std::vector<uint32_t> strides(sizes.size());
  uint32_t stride = 1 + static_cast<uint32_t>(random.Below(2));
  for (const size_t axis : order) {
    strides[axis] = stride;
    stride = stride * sizes[axis] + static_cast<uint32_t>(random.Below(3));
  }
  return strides;
}

// A value, or a view of it: some elements along each dimension, perhaps every second one, with the
// dimensions in another order.
struct RandomInput {
  ProgramView view;
  TensorDesc tensor;
};
RandomInput PickView(const ProgramBuilder& builder, uint32_t value, Random& random) {
  RandomInput picked = {value, builder.tensor(value)};
  if (!random.OneIn(3)) return picked;
  TensorDesc& tensor = picked.tensor;
  tensor.strides = EffectiveStrides(tensor);
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    const auto first = random.OneIn(2) ? static_cast<uint32_t>(random.Below(tensor.sizes[d])) : 0;
    const uint32_t step = random.OneIn(4) ? 2 : 1;
    picked.view.first_element += uint64_t{first} * tensor.strides[d];
    tensor.sizes[d] = (tensor.sizes[d] - first + step - 1) / step;
    tensor.strides[d] *= step;
  }
  if (tensor.sizes.size() > 1 && random.OneIn(2)) {
    std::swap(tensor.sizes.front(), tensor.sizes.back());
    std::swap(tensor.strides.front(), tensor.strides.back());
  }
  return picked;
}

OperatorDesc IdentityOf(const TensorDesc& tensor) {
  return {.schema = &SchemaOf(ElementWiseOp::kIdentity), .inputs = {tensor}, .outputs = {{}}};
}

// May be invalid: some operators do not support some types.
OperatorDesc RandomOperator(const ProgramBuilder& builder, const TensorDesc& input,
                            std::vector<ProgramView>& inputs, Random& random) {
  const uint32_t axis = static_cast<uint32_t>(random.Below(input.sizes.size()));
  std::vector<uint32_t> axes = {axis};
  if (random.OneIn(3)) axes.push_back(static_cast<uint32_t>(random.Below(input.sizes.size())));
  const auto direction = static_cast<AxisDirection>(random.Below(2));
  switch (random.Below(6)) {
    case 0:
      return ReduceDesc{.function = static_cast<ReduceFunction>(random.Below(kReduceFunctionCount)),
                        .input = input,
                        .axes = axes};
    case 1:
      return ArgReduceDesc{.extreme = static_cast<Extreme>(random.Below(2)),
                           .input = input,
                           .axes = axes,
                           .axis_direction = direction};
    case 2:
      return HardmaxDesc{.input = input, .axes = axes};
    case 3:
      return TopKDesc{.input = input,
                      .axis = axis,
                      .k = 1 + static_cast<uint32_t>(random.Below(input.sizes[axis])),
                      .axis_direction = direction};
    case 4:
      return CumulativeSummationDesc{.input = input,
                                     .axis = axis,
                                     .axis_direction = direction,
                                     .has_exclusive_sum = random.OneIn(2)};
    default:
      break;
  }
  std::vector<uint32_t> alike;
  for (uint32_t value = 0; value < builder.value_count(); ++value) {
    const TensorDesc& other = builder.tensor(value);
    if (other.data_type == input.data_type && other.sizes == input.sizes) alike.push_back(value);
  }
  if (alike.empty()) return IdentityOf(input);
  inputs.emplace_back(random.Pick(alike));
  return ElementWiseAddDesc{.a = input, .b = builder.tensor(inputs[1].value)};
}

}  // namespace

Program RandomProgram(uint64_t seed, const RandomProgramOptions& options) {
  Random random(seed);
  ProgramBuilder builder;
  for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
    TensorDesc input = {random.Pick(options.types), RandomSizes(random, options.most_elements), {}};
    input.strides = RandomStrides(input.sizes, random);
    if (!input.strides.empty() && random.OneIn(4)) input.strides[0] = 0;
    builder.Input(std::move(input));
  }
  const size_t nodes = 1 + random.Below(options.most_nodes);
  while (builder.program().nodes.size() < nodes) {
    // Mostly one of the last values.
    const uint32_t back =
        1 + static_cast<uint32_t>(random.Below(random.OneIn(3) ? builder.value_count() : 2));
    const RandomInput input =
        PickView(builder, builder.value_count() - std::min(back, builder.value_count()), random);
    std::vector<ProgramView> inputs = {input.view};
    auto desc = Validate(RandomOperator(builder, input.tensor, inputs, random));
    if (!desc.ok()) continue;
    for (std::optional<TensorDesc>& output : desc->outputs) {
      output->strides = RandomStrides(output->sizes, random);
    }
    desc = Validate(*std::move(desc));
    if (desc.ok()) builder.Add(*desc, std::move(inputs));
  }
  for (const ProgramNode& node : builder.program().nodes) {
    const bool is_last = &node == &builder.program().nodes.back();
    for (const uint32_t value : node.outputs) {
      if (is_last || random.OneIn(3)) builder.Return(value);
    }
  }
  return builder.program();
}

std::vector<TensorBytes> RandomInputs(const Program& program, uint64_t seed) {
  std::vector<TensorBytes> inputs;
  for (const ProgramValue& value : program.values) {
    if (value.kind != ValueKind::kInput) continue;
    inputs.push_back(MakeValues(ValuePattern::kNumbers, value.tensor.data_type,
                                RequiredBytes(value.tensor), value.tensor.sizes.back(),
                                seed + inputs.size()));
  }
  return inputs;
}

}  // namespace opmill
