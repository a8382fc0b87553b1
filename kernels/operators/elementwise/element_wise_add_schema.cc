#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/elementwise/element_wise_add_desc.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "a"}, {.name = "b"}};
constexpr TensorSchema kOutputs[] = {{.name = "output"}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const TensorDesc& a = desc.inputs[0];
  const TensorDesc& b = desc.inputs[1];
  if (b.sizes.size() != a.sizes.size()) {
    return InvalidField(
        "b.sizes", absl::StrCat("b.sizes has ", b.sizes.size(), " dimensions, but a.sizes has ",
                                a.sizes.size(), "."));
  }
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    if (b.sizes[i] == a.sizes[i]) continue;
    const std::string field = absl::StrCat("b.sizes[", i, "]");
    return InvalidField(field, absl::StrCat(field, " is ", b.sizes[i], ", but a.sizes[", i, "] is ",
                                            a.sizes[i], "."));
  }
  if (b.data_type != a.data_type) {
    return InvalidField("b.data_type",
                        absl::StrCat("b.data_type (", ToString(b.data_type),
                                     ") differs from a.data_type (", ToString(a.data_type), ")."));
  }
  outputs = {{.sizes = a.sizes, .data_type = a.data_type}};
  return absl::OkStatus();
}

constexpr FeatureLevelRow kRows[] = {
    {FeatureLevel::k5_1, 1, 8, kTenTypes},
    {FeatureLevel::k4_1, 1, 8, kFloats | kIntegers64 | kIntegers32},
    {FeatureLevel::k3_0, 1, 8, kFloats | kIntegers32},
    {FeatureLevel::k2_1, 4, 5, kFloats | kIntegers32},
    {FeatureLevel::k1_0, 4, 5, kFloats},
};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

}  // namespace

constinit const OperatorSchema kElementWiseAddSchema = {.name = "element_wise_add",
                                                        .wire_name = "element_wise_add",
                                                        .summary = "a + b, element by element",
                                                        .inputs = kInputs,
                                                        .outputs = kOutputs,
                                                        .attributes = {},
                                                        .support = kSupport,
                                                        .infer = &Infer};

ElementWiseAddDesc::operator OperatorDesc() const {
  return {.schema = &kElementWiseAddSchema, .inputs = {a, b}, .outputs = {output}};
}

ElementWiseAddDesc ElementWiseAddDesc::From(const OperatorDesc& desc) {
  return {.a = desc.inputs[0], .b = desc.inputs[1], .output = desc.outputs[0]};
}

}  // namespace opmill
