#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/top_k/top_k_desc.h"

namespace opmill {
namespace {

using enum DataType;

constexpr TensorSchema kInputs[] = {{.name = "input"}};
constexpr TensorSchema kOutputs[] = {{.name = "output_values"},
                                     {.name = "output_indices", .type = TypeVariable::kIndex}};
constexpr AttributeSchema kAttributes[] = {{.name = "axis", .kind = AttributeKind::kAxis},
                                           {.name = "k"},
                                           {.name = "axis_direction",
                                            .kind = AttributeKind::kChoice,
                                            .choices = kAxisDirections,
                                            .default_text = "DECREASING"}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const uint32_t axis = desc.number("axis");
  const uint32_t k = desc.number("k");
  std::vector<uint32_t> sizes = desc.inputs[0].sizes;
  if (k == 0) return InvalidField("k", "k (0) is below 1.");
  if (k > sizes[axis]) {
    return InvalidField("k", absl::StrCat("k (", k, ") is larger than the size (", sizes[axis],
                                          ") of axis (", axis, ")."));
  }
  sizes[axis] = k;
  outputs = {{.sizes = sizes, .data_type = desc.inputs[0].data_type},
             {.sizes = sizes, .data_type = kUint32, .type_is_free = true}};
  return absl::OkStatus();
}

std::optional<Breach> FindIncreasing(const OperatorDesc& desc) {
  if (desc.choice<AxisDirection>("axis_direction") == AxisDirection::kDecreasing) {
    return std::nullopt;
  }
  return Breach{"axis_direction",
                "takes axis_direction DECREASING, but axis_direction is INCREASING"};
}

constexpr FeatureLevelRow kTopK1Rows[] = {
    {FeatureLevel::k5_0, 1, 8, kTenTypes, {kUint64, kUint32}},
    {FeatureLevel::k3_1, 1, 8, kEightTypes, {kUint32}},
    {FeatureLevel::k2_1, 4, 4, kEightTypes, {kUint32}},
};
constexpr FeatureLevelRow kTopKRows[] = {
    {FeatureLevel::k2_0, 4, 4, kFloats, {kUint32}},
};
constexpr SupportTable kSupport[] = {
    {.rows = kTopK1Rows},
    {.rows = kTopKRows,
     .condition = "axis_direction is DECREASING",
     .find_breach = &FindIncreasing},
};

}  // namespace

constinit const OperatorSchema kTopKSchema = {
    .name = "top_k",
    .wire_name = "top_k",
    .summary = "the k largest or smallest elements along the axis, with their indices",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kAttributes,
    .family = OperatorFamily::kTopK,
    .support = kSupport,
    .infer = &Infer};

std::vector<const OperatorSchema*> TopKOperators() { return {&kTopKSchema}; }

TopKDesc::operator OperatorDesc() const {
  return {.schema = &kTopKSchema,
          .inputs = {input},
          .outputs = {output_values, output_indices},
          .attributes = {axis, k, static_cast<uint32_t>(axis_direction)}};
}

TopKDesc TopKDesc::From(const OperatorDesc& desc) {
  return {.input = desc.inputs[0],
          .output_values = desc.outputs[0],
          .output_indices = desc.outputs[1],
          .axis = desc.number("axis"),
          .k = desc.number("k"),
          .axis_direction = desc.choice<AxisDirection>("axis_direction")};
}

}  // namespace opmill
