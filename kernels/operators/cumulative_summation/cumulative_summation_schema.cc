#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "input"}};
constexpr TensorSchema kOutputs[] = {{.name = "output"}};
constexpr AttributeSchema kAttributes[] = {
    {.name = "axis", .kind = AttributeKind::kAxis},
    {.name = "axis_direction",
     .kind = AttributeKind::kChoice,
     .choices = kAxisDirections,
     .default_text = "INCREASING"},
    {.name = "has_exclusive_sum", .kind = AttributeKind::kFlag}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  outputs = {{.sizes = desc.inputs[0].sizes, .data_type = desc.inputs[0].data_type}};
  return absl::OkStatus();
}

constexpr FeatureLevelRow kRows[] = {
    {FeatureLevel::k5_0, 1, 8, kFloats | kIntegers32 | kIntegers64},
    {FeatureLevel::k4_0, 1, 8, kFloats | kIntegers32},
    {FeatureLevel::k2_1, 4, 4, kFloats | kIntegers32},
};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

}  // namespace

constinit const OperatorSchema kCumulativeSummationSchema = {
    .name = "cumulative_summation",
    .wire_name = "cumulative_summation",
    .summary = "the sums of all elements up to each one along the axis",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kAttributes,
    .family = OperatorFamily::kCumulativeSummation,
    .support = kSupport,
    .infer = &Infer};

std::vector<const OperatorSchema*> CumulativeSummationOperators() {
  return {&kCumulativeSummationSchema};
}

CumulativeSummationDesc::operator OperatorDesc() const {
  return {.schema = &kCumulativeSummationSchema,
          .inputs = {input},
          .outputs = {output},
          .attributes = {axis, static_cast<uint32_t>(axis_direction), has_exclusive_sum ? 1u : 0u}};
}

CumulativeSummationDesc CumulativeSummationDesc::From(const OperatorDesc& desc) {
  return {.input = desc.inputs[0],
          .output = desc.outputs[0],
          .axis = desc.number("axis"),
          .axis_direction = desc.choice<AxisDirection>("axis_direction"),
          .has_exclusive_sum = desc.number("has_exclusive_sum") != 0};
}

}  // namespace opmill
