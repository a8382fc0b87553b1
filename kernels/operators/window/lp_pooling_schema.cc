#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/window/pooling_desc.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "input"}};
constexpr TensorSchema kOutputs[] = {{.name = "output"}};
constexpr AttributeSchema kAttributes[] = {
    kWindowAttributes[0], kWindowAttributes[1],
    kWindowAttributes[2], kWindowAttributes[3],
    kWindowAttributes[4], {.name = "p", .kind = AttributeKind::kNumber, .default_text = "2"}};

constexpr FeatureLevelRow kRows1[] = {{FeatureLevel::k6_2, 4, 5, kFloats}};
constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k1_0, 4, 5, kFloats}};
constexpr SupportTable kSupport[] = {
    {.rows = kRows1},
    {.rows = kRows, .condition = kWithoutDilations, .find_breach = &FindDilations}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  if (desc.number("p") == 0) return InvalidField("p", "p is 0, but must be at least 1.");
  return InferPooling(desc, outputs);
}

}  // namespace

constinit const OperatorSchema kLpPoolingSchema = {
    .name = "lp_pooling",
    .summary = "the p-th root of the sum of |x|^p over each window",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kAttributes,
    .family = OperatorFamily::kLpPooling,
    .support = kSupport,
    .infer = &Infer};

std::vector<const OperatorSchema*> LpPoolingOperators() { return {&kLpPoolingSchema}; }

}  // namespace opmill
