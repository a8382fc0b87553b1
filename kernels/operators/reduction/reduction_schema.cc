#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {
namespace {

using enum DataType;

constexpr DataTypeSet kArgIndices = kIntegers32 | kIntegers64;

constexpr absl::string_view kFunctions[] = {"ARGMAX", "ARGMIN",   "AVERAGE",     "L1",
                                            "L2",     "LOG_SUM",  "LOG_SUM_EXP", "MAX",
                                            "MIN",    "MULTIPLY", "SUM",         "SUM_SQUARE"};
static_assert(std::size(kFunctions) == kReduceFunctionCount);

constexpr TensorSchema kInputs[] = {{.name = "input"}};
constexpr TensorSchema kOutputs[] = {{.name = "output", .type = TypeVariable::kIndex}};
constexpr AttributeSchema kArgAttributes[] = {{.name = "axes", .kind = AttributeKind::kAxes},
                                              {.name = "axis_direction",
                                               .kind = AttributeKind::kChoice,
                                               .choices = kAxisDirections,
                                               .default_text = "INCREASING"}};
constexpr AttributeSchema kReduceAttributes[] = {
    {.name = "function", .kind = AttributeKind::kChoice, .choices = kFunctions},
    {.name = "axes", .kind = AttributeKind::kAxes}};

absl::Status InferArg(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  outputs = {{.sizes = ReducedSizes(desc.inputs[0].sizes, desc.list("axes")),
              .data_type = kUint32,
              .type_is_free = true}};
  return absl::OkStatus();
}

absl::Status InferReduce(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  if (GivesIndices(desc.choice<ReduceFunction>("function"))) return InferArg(desc, outputs);
  outputs = {{.sizes = ReducedSizes(desc.inputs[0].sizes, desc.list("axes")),
              .data_type = desc.inputs[0].data_type}};
  return absl::OkStatus();
}

constexpr FeatureLevelRow kArgRows[] = {
    {FeatureLevel::k4_1, 1, 8, kTenTypes, kArgIndices},
    {FeatureLevel::k3_0, 1, 8, kEightTypes, kArgIndices},
};
constexpr FeatureLevelRow kReduceArgRows[] = {
    {FeatureLevel::k4_1, 1, 8, kTenTypes, kArgIndices},
    {FeatureLevel::k3_0, 1, 8, kEightTypes, kArgIndices},
    {FeatureLevel::k2_1, 4, 4, kEightTypes, {kUint32}},
    {FeatureLevel::k1_0, 4, 4, kFloats, {kUint32}},
};
constexpr FeatureLevelRow kAverageRows[] = {
    {FeatureLevel::k3_0, 1, 8, kFloats},
    {FeatureLevel::k1_0, 4, 4, kFloats},
};
constexpr FeatureLevelRow kSumSquareRows[] = {
    {FeatureLevel::k5_0, 1, 8, kFloats | kIntegers32 | kIntegers64},
    {FeatureLevel::k3_0, 1, 8, kFloats},
    {FeatureLevel::k1_0, 4, 4, kFloats},
};
constexpr FeatureLevelRow kMinMaxRows[] = {
    {FeatureLevel::k5_0, 1, 8, kTenTypes},
    {FeatureLevel::k3_0, 1, 8, kEightTypes},
    {FeatureLevel::k2_1, 4, 4, kFloats | kIntegers32},
    {FeatureLevel::k1_0, 4, 4, kFloats},
};
constexpr FeatureLevelRow kSumRows[] = {
    {FeatureLevel::k5_0, 1, 8, kFloats | kIntegers32 | kIntegers64},
    {FeatureLevel::k3_0, 1, 8, kFloats | kIntegers32},
    {FeatureLevel::k2_1, 4, 4, kFloats | kIntegers32},
    {FeatureLevel::k1_0, 4, 4, kFloats},
};

constexpr uint32_t Bits(std::initializer_list<ReduceFunction> functions) {
  uint32_t bits = 0;
  for (const ReduceFunction function : functions) bits |= 1u << static_cast<uint32_t>(function);
  return bits;
}

constexpr SupportTable kArgSupport[] = {{.rows = kArgRows}};
constexpr SupportTable kReduceSupport[] = {
    {.rows = kReduceArgRows, .functions = Bits({ReduceFunction::kArgMax, ReduceFunction::kArgMin})},
    {.rows = kAverageRows,
     .functions = Bits({ReduceFunction::kAverage, ReduceFunction::kL2, ReduceFunction::kLogSum,
                        ReduceFunction::kLogSumExp})},
    {.rows = kSumSquareRows, .functions = Bits({ReduceFunction::kL1, ReduceFunction::kSumSquare})},
    {.rows = kMinMaxRows, .functions = Bits({ReduceFunction::kMax, ReduceFunction::kMin})},
    {.rows = kSumRows, .functions = Bits({ReduceFunction::kMultiply, ReduceFunction::kSum})},
};

}  // namespace

constinit const OperatorSchema kArgMinSchema = {
    .name = "argmin",
    .wire_name = "arg_min",
    .summary = "index of the smallest element over the axes",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kArgAttributes,
    .family = OperatorFamily::kArg,
    .support = kArgSupport,
    .infer = &InferArg};

constinit const OperatorSchema kArgMaxSchema = {
    .name = "argmax",
    .wire_name = "arg_max",
    .summary = "index of the largest element over the axes",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kArgAttributes,
    .family = OperatorFamily::kArg,
    .support = kArgSupport,
    .infer = &InferArg};

constinit const OperatorSchema kReduceSchema = {.name = "reduce",
                                                .wire_name = "reduce",
                                                .summary = "one of 12 functions over the axes",
                                                .inputs = kInputs,
                                                .outputs = kOutputs,
                                                .attributes = kReduceAttributes,
                                                .family = OperatorFamily::kReduce,
                                                .function_attribute = 0,
                                                .support = kReduceSupport,
                                                .infer = &InferReduce};

std::vector<const OperatorSchema*> ArgOperators() { return {&kArgMinSchema, &kArgMaxSchema}; }
std::vector<const OperatorSchema*> ReduceOperators() { return {&kReduceSchema}; }

absl::string_view ToString(ReduceFunction function) {
  return ChoiceName(kReduceAttributes[0], static_cast<uint32_t>(function));
}

ArgReduceDesc::operator OperatorDesc() const {
  return {.schema = extreme == Extreme::kMin ? &kArgMinSchema : &kArgMaxSchema,
          .inputs = {input},
          .outputs = {output},
          .attributes = {axes, static_cast<uint32_t>(axis_direction)}};
}

ArgReduceDesc ArgReduceDesc::From(const OperatorDesc& desc) {
  return {.extreme = desc.schema == &kArgMinSchema ? Extreme::kMin : Extreme::kMax,
          .input = desc.inputs[0],
          .output = desc.outputs[0],
          .axes = desc.list("axes"),
          .axis_direction = desc.choice<AxisDirection>("axis_direction")};
}

ReduceDesc::operator OperatorDesc() const {
  return {.schema = &kReduceSchema,
          .inputs = {input},
          .outputs = {output},
          .attributes = {static_cast<uint32_t>(function), axes}};
}

ReduceDesc ReduceDesc::From(const OperatorDesc& desc) {
  return {.function = desc.choice<ReduceFunction>("function"),
          .input = desc.inputs[0],
          .output = desc.outputs[0],
          .axes = desc.list("axes")};
}

ArgReduceDesc ReduceDesc::AsArgReduce() const {
  return {.extreme = function == ReduceFunction::kArgMin ? Extreme::kMin : Extreme::kMax,
          .input = input,
          .output = output,
          .axes = axes};
}

}  // namespace opmill
