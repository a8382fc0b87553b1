#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

// ACTIVATION_HARDMAX takes no axes.
std::optional<Breach> FindBeyondHardmax(const OperatorDesc& desc) {
  const std::vector<uint32_t>& sizes = desc.inputs[0].sizes;
  const std::vector<uint32_t>& axes = desc.list("axes");
  const uint32_t last = static_cast<uint32_t>(sizes.size() - 1);
  if (axes != std::vector<uint32_t>{last}) {
    return Breach{"axes", absl::StrCat("takes the last axis (", last, ") alone, but axes is [",
                                       absl::StrJoin(axes, ","), "]")};
  }
  if (EffectiveRank(sizes) <= 2) return std::nullopt;
  return Breach{"input.sizes", absl::StrCat("takes at most 2 dimensions after leading sizes of 1, "
                                            "but input.sizes is [",
                                            absl::StrJoin(sizes, ","), "]")};
}

constexpr FeatureLevelRow kHardmax1Rows[] = {{FeatureLevel::k5_1, 1, 8, kFloats}};
constexpr FeatureLevelRow kHardmaxRows[] = {
    {FeatureLevel::k3_0, 1, 8, kFloats},
    {FeatureLevel::k2_0, 4, 5, kFloats},
    {FeatureLevel::k1_0, 4, 4, kFloats},
};

}  // namespace

constinit const TensorSchema kHardmaxInputs[1] = {{.name = "input"}};
constinit const TensorSchema kHardmaxOutputs[1] = {{.name = "output"}};
constinit const AttributeSchema kHardmaxAttributes[1] = {
    {.name = "axes", .kind = AttributeKind::kAxes}};
constinit const SupportTable kHardmaxSupport[2] = {
    {.rows = kHardmax1Rows},
    {.rows = kHardmaxRows,
     .condition = "axes is the last axis alone, and the effective rank at most 2",
     .find_breach = &FindBeyondHardmax},
};

absl::Status InferHardmax(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  outputs = {{.sizes = desc.inputs[0].sizes, .data_type = desc.inputs[0].data_type}};
  return absl::OkStatus();
}

constinit const OperatorSchema kHardmaxSchema = {
    .name = "hardmax",
    .wire_name = "hardmax",
    .summary = "1 at the first largest element over the axes, 0 elsewhere",
    .inputs = kHardmaxInputs,
    .outputs = kHardmaxOutputs,
    .attributes = kHardmaxAttributes,
    .family = OperatorFamily::kHardmax,
    .support = kHardmaxSupport,
    .infer = &InferHardmax};

std::vector<const OperatorSchema*> HardmaxOperators() { return {&kHardmaxSchema}; }

HardmaxDesc::operator OperatorDesc() const {
  return {.schema = &kHardmaxSchema, .inputs = {input}, .outputs = {output}, .attributes = {axes}};
}

HardmaxDesc HardmaxDesc::From(const OperatorDesc& desc) {
  return {.input = desc.inputs[0], .output = desc.outputs[0], .axes = desc.list("axes")};
}

}  // namespace opmill
