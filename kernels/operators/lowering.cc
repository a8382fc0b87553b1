#include "kernels/operators/lowering.h"

#include <bit>
#include <utility>

#include "kernels/descriptor/broadcast.h"
#include "kernels/operators/elementwise/element_wise_chain.h"

namespace opmill {
namespace {

ChainStep CastTo(DataType type, uint32_t operand) {
  return {.op = ElementWiseOp::kCast, .type = type, .operands = {operand}};
}

}  // namespace

Lowering::Lowering(const OperatorDesc& validated) : desc_(validated) {
  for (const TensorDesc& input : desc_.inputs) {
    program_.values.push_back({ValueKind::kInput, input});
  }
  program_.values.push_back({ValueKind::kOutput, *desc_.outputs[0]});
}

uint32_t Lowering::AddIntermediate(const TensorDesc& tensor) {
  program_.values.push_back({ValueKind::kIntermediate, tensor});
  return static_cast<uint32_t>(program_.values.size() - 1);
}

Operand Lowering::Reduce(ReduceFunction function, const Operand& input,
                         const std::vector<uint32_t>& axes) {
  TensorDesc output = {input.tensor.data_type, ReducedSizes(input.tensor.sizes, axes), {}};
  return Add(ReduceDesc{function, input.tensor, std::move(output), axes}, input);
}

Operand Lowering::Map(const std::vector<uint32_t>& sizes, const std::vector<Operand>& inputs,
                      const std::vector<MapStep>& steps) {
  Operand output = {.tensor = {DataType::kFloat32, sizes, {}}};
  output.value = AddIntermediate(output.tensor);
  AddChain(inputs, steps, output);
  return output;
}

Operand Lowering::Add(OperatorDesc desc, const Operand& input) {
  Operand output = {.tensor = *desc.outputs[0]};
  output.value = AddIntermediate(output.tensor);
  program_.nodes.push_back({std::move(desc), {input.value}, {output.value}});
  return output;
}

Program Lowering::Return(const std::vector<Operand>& inputs, const std::vector<MapStep>& steps) {
  AddChain(inputs, steps, {static_cast<uint32_t>(desc_.inputs.size()), *desc_.outputs[0]});
  return std::move(program_);
}

void Lowering::AddChain(const std::vector<Operand>& inputs, const std::vector<MapStep>& steps,
                        const Operand& output) {
  Chain chain = {.output = output.tensor};
  std::vector<ProgramView> nodes_inputs;
  for (const Operand& input : inputs) {
    BroadcastTo(output.tensor.sizes, chain.inputs.emplace_back(input.tensor));
    nodes_inputs.emplace_back(input.value);
  }
  const auto count = static_cast<uint32_t>(inputs.size());
  const auto next = [&] { return static_cast<uint32_t>(count + chain.steps.size()); };
  std::vector<uint32_t> operands;  // of `steps`, as those of the chain
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_float = inputs[i].tensor.data_type == DataType::kFloat32;
    operands.push_back(is_float ? i : next());
    if (!is_float) chain.steps.push_back(CastTo(DataType::kFloat32, i));
  }
  for (const MapStep& step : steps) {
    ChainStep to = {.op = step.op};
    for (const uint32_t operand : step.operands) to.operands.push_back(operands[operand]);
    for (const float parameter : step.parameters) {
      to.parameters.push_back(std::bit_cast<uint32_t>(parameter));
    }
    operands.push_back(next());
    chain.steps.push_back(std::move(to));
  }
  const uint32_t result = steps.empty() ? operands[0] : operands.back();
  if (output.tensor.data_type != DataType::kFloat32) {
    chain.steps.push_back(CastTo(output.tensor.data_type, result));
  } else if (chain.steps.empty()) {
    chain.steps.push_back({.op = ElementWiseOp::kIdentity, .operands = {result}});
  }
  // A chain of valid steps within the limits.
  program_.nodes.push_back({DescribeChain(chain).value(), std::move(nodes_inputs), {output.value}});
}

}  // namespace opmill
