#include "kernels/operators/elementwise/element_wise_chain.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/half.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

// A chain as an attribute: for each step its operation, its type, its operands with their number,
// and its parameters with theirs, in two words each.
constexpr AttributeSchema kChainAttributes[] = {{.name = "steps", .kind = AttributeKind::kNumbers}};
constexpr TensorSchema kChainInputs[kMaxChainInputs] = {
    {.name = "input0"}, {.name = "input1"}, {.name = "input2"}, {.name = "input3"},
    {.name = "input4"}, {.name = "input5"}, {.name = "input6"}, {.name = "input7"}};
constexpr TensorSchema kChainOutputs[] = {{.name = "output"}};
constexpr OperatorSchema kChainSchema = {.name = "element_wise_chain",
                                         .summary = "element-wise operations in one walk",
                                         .inputs = kChainInputs,
                                         .outputs = kChainOutputs,
                                         .attributes = kChainAttributes,
                                         .family = OperatorFamily::kElementWise};

std::vector<uint32_t> Encode(const std::vector<ChainStep>& steps) {
  std::vector<uint32_t> words;
  for (const ChainStep& step : steps) {
    words.push_back(static_cast<uint32_t>(step.op));
    words.push_back(static_cast<uint32_t>(step.type));
    words.push_back(static_cast<uint32_t>(step.operands.size()));
    words.insert(words.end(), step.operands.begin(), step.operands.end());
    words.push_back(static_cast<uint32_t>(step.parameters.size()));
    for (const uint64_t parameter : step.parameters) {
      words.push_back(static_cast<uint32_t>(parameter));
      words.push_back(static_cast<uint32_t>(parameter >> 32));
    }
  }
  return words;
}

std::vector<ChainStep> Decode(const std::vector<uint32_t>& words) {
  std::vector<ChainStep> steps;
  size_t at = 0;
  while (at < words.size()) {
    ChainStep& step = steps.emplace_back();
    step.op = static_cast<ElementWiseOp>(words[at++]);
    step.type = static_cast<DataType>(words[at++]);
    for (uint32_t left = words[at++]; left > 0; --left) step.operands.push_back(words[at++]);
    for (uint32_t left = words[at++]; left > 0; --left, at += 2) {
      step.parameters.push_back(words[at] | uint64_t{words[at + 1]} << 32);
    }
  }
  return steps;
}

uint64_t FloatBits(float value, DataType type) {
  if (type == DataType::kFloat16) value = HalfToFloat(FloatToHalf(value));
  return std::bit_cast<uint32_t>(value);
}

uint64_t ParameterOf(const AttributeValue& value, DataType type) {
  if (const auto* number = std::get_if<uint32_t>(&value)) return *number;
  if (const auto* real = std::get_if<float>(&value)) {
    return std::bit_cast<uint32_t>(*real);
  }
  const Scalar& scalar = std::get<Scalar>(value);
  if (const auto* real = std::get_if<double>(&scalar)) {
    return FloatBits(static_cast<float>(*real), type);
  }
  if (const auto* integer = std::get_if<int64_t>(&scalar)) return static_cast<uint64_t>(*integer);
  return std::get<uint64_t>(scalar);
}

DataType WordType(DataType type) {
  switch (ElementBytes(type)) {
    case 1:
      return DataType::kUint8;
    case 2:
      return DataType::kUint16;
    case 4:
      return DataType::kUint32;
    default:
      return DataType::kUint64;
  }
}

absl::Status CheckStep(const Chain& chain, size_t index) {
  const ChainStep& step = chain.steps[index];
  const OperatorSchema& schema = SchemaOf(step.op);
  OperatorDesc desc = {.schema = &schema};
  if (step.operands.size() != schema.inputs.size() ||
      step.parameters.size() != schema.attributes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("Step ", index, ", ", schema.name, ", takes ",
                                                   schema.inputs.size(), " operands and ",
                                                   schema.attributes.size(), " parameters."));
  }
  for (size_t i = 0; i < step.operands.size(); ++i) {
    if (step.operands[i] >= chain.inputs.size() + index) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Operand ", i, " of step ", index, ", ", schema.name, ", is no input or earlier step."));
    }
    const DataType type = chain.TypeOf(step.operands[i]);
    const FeatureLevelRow& row = schema.support[0].rows[0];
    const TypeVariable variable = schema.inputs[i].type;
    const bool agrees = variable == TypeVariable::kOther || i + 1 == step.operands.size() ||
                        type == chain.TypeOf(step.operands.back());
    const bool is_word = !TakesBits(RowOf(step.op).result) || type == WordType(type);
    if (row.TypesOf(variable).Contains(type) && agrees && is_word) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Step ", index, ", ", schema.name, ", does not take ", ToString(type), "."));
  }
  const FeatureLevelRow& row = schema.support[0].rows[0];
  const bool writes = row.result_types.empty() ? step.type == chain.TypeOf(step.operands.back())
                                               : row.result_types.Contains(step.type);
  if (writes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Step ", index, ", ", schema.name,
                                                 ", does not write ", ToString(step.type), "."));
}

}  // namespace

Chain ChainOf(const OperatorDesc& validated) {
  Chain chain = {.inputs = validated.inputs, .output = *validated.outputs[0]};
  if (validated.schema == &kChainSchema) {
    chain.steps = Decode(validated.list("steps"));
    return chain;
  }
  ChainStep step = {.op = *ElementWiseOpOf(*validated.schema), .type = chain.output.data_type};
  for (uint32_t i = 0; i < chain.inputs.size(); ++i) step.operands.push_back(i);
  for (const AttributeValue& value : validated.attributes) {
    step.parameters.push_back(ParameterOf(value, chain.inputs[0].data_type));
  }
  const ElementWiseResult result = RowOf(step.op).result;
  if (result == ElementWiseResult::kMove || TakesBits(result)) {
    // Words of the elements' size, so that all bits of a NaN are kept.
    for (TensorDesc& input : chain.inputs) input.data_type = WordType(input.data_type);
    step.type = chain.output.data_type = WordType(step.type);
  }
  chain.steps = {std::move(step)};
  return chain;
}

absl::StatusOr<OperatorDesc> DescribeChain(const Chain& chain) {
  size_t parameters = 0;
  for (const ChainStep& step : chain.steps) parameters += step.parameters.size();
  if (chain.inputs.empty() || chain.inputs.size() > kMaxChainInputs || chain.steps.empty() ||
      parameters > kMaxChainParameters) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A chain has ", chain.inputs.size(), " inputs, ", chain.steps.size(), " steps and ",
        parameters, " parameters; 1 to ", kMaxChainInputs, " inputs, a step and up to ",
        kMaxChainParameters, " parameters are allowed."));
  }
  for (const TensorDesc& input : chain.inputs) {
    if (input.sizes == chain.output.sizes) continue;
    return absl::InvalidArgumentError("The tensors of a chain differ in their sizes.");
  }
  for (size_t i = 0; i < chain.steps.size(); ++i) {
    RETURN_IF_ERROR(CheckStep(chain, i));
  }
  if (chain.steps.back().type != chain.output.data_type) {
    return absl::InvalidArgumentError("The last step of a chain has another type than its output.");
  }
  return OperatorDesc{.schema = &kChainSchema,
                      .inputs = chain.inputs,
                      .outputs = {chain.output},
                      .attributes = {Encode(chain.steps)}};
}

}  // namespace opmill
