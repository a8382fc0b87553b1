#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/operators/normalization/normalization_desc.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

using enum FeatureLevel;

constexpr TensorSchema kMeanVarianceInputs[] = {
    {.name = "input"}, {.name = "scale", .optional = true}, {.name = "bias", .optional = true}};
constexpr TensorSchema kBatchInputs[] = {
    {.name = "input"}, {.name = "mean"}, {.name = "variance"}, {.name = "scale"}, {.name = "bias"}};
constexpr TensorSchema kLocalResponseInputs[] = {{.name = "input"}};
constexpr TensorSchema kOutputs[] = {{.name = "output"}};

constexpr AttributeSchema kEpsilon = {
    .name = "epsilon", .kind = AttributeKind::kFloat, .default_text = "0.00001"};
constexpr AttributeSchema kMeanVarianceAttributes[] = {
    {.name = "axes", .kind = AttributeKind::kAxes},
    {.name = "use_mean", .kind = AttributeKind::kFlag, .default_text = "true"},
    {.name = "use_variance", .kind = AttributeKind::kFlag, .default_text = "true"},
    kEpsilon};
constexpr AttributeSchema kBatchAttributes[] = {kEpsilon};
constexpr AttributeSchema kLocalResponseAttributes[] = {
    {.name = "cross_channel", .kind = AttributeKind::kFlag, .default_text = "true"},
    {.name = "local_size", .kind = AttributeKind::kNumber},
    {.name = "alpha", .kind = AttributeKind::kFloat, .default_text = "0.0001"},
    {.name = "beta", .kind = AttributeKind::kFloat, .default_text = "0.75"},
    {.name = "bias", .kind = AttributeKind::kFloat, .default_text = "1"}};

// MEAN_VARIANCE_NORMALIZATION1 always subtracts the mean, and has both scale and bias or neither.
std::optional<Breach> FindBeyond1(const OperatorDesc& desc) {
  if (desc.number("use_mean") == 0) {
    return Breach{"use_mean", "takes use_mean of true, but use_mean is false"};
  }
  if (desc.inputs.size() != 2) return std::nullopt;
  return Breach{"scale", "takes scale and bias or neither, but has scale alone"};
}

constexpr FeatureLevelRow kMeanVariance2Rows[] = {{k6_3, 1, 8, kFloats}};
constexpr FeatureLevelRow kMeanVariance1Rows[] = {{k3_1, 1, 8, kFloats}, {k2_1, 4, 4, kFloats}};
constexpr SupportTable kMeanVarianceSupport[] = {
    {.rows = kMeanVariance2Rows},
    {.rows = kMeanVariance1Rows,
     .condition = "use_mean is true, with scale and bias or neither",
     .find_breach = &FindBeyond1}};
constexpr FeatureLevelRow kBatchRows[] = {{k3_1, 1, 8, kFloats}, {k1_0, 4, 4, kFloats}};
constexpr SupportTable kBatchSupport[] = {{.rows = kBatchRows}};
constexpr FeatureLevelRow kLocalResponseRows[] = {{k1_0, 4, 4, kFloats}};
constexpr SupportTable kLocalResponseSupport[] = {{.rows = kLocalResponseRows}};

// Checks that an input has the type of the first one, and its sizes or 1.
absl::Status CheckInput(const OperatorDesc& desc, size_t i) {
  RETURN_IF_ERROR(CheckType(desc, i));
  RETURN_IF_ERROR(CheckRank(desc, i));
  const absl::string_view name = desc.schema->inputs[i].name;
  const TensorDesc& input = desc.inputs[0];
  const TensorDesc& other = desc.inputs[i];
  for (size_t d = 0; d < input.sizes.size(); ++d) {
    if (other.sizes[d] == input.sizes[d] || other.sizes[d] == 1) continue;
    const std::string field = absl::StrCat(name, ".sizes[", d, "]");
    return InvalidField(field, absl::StrCat(field, " is ", other.sizes[d], ", but must be 1 or ",
                                            input.sizes[d], ", as input.sizes[", d, "]."));
  }
  return absl::OkStatus();
}

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  for (size_t i = 1; i < desc.inputs.size(); ++i) RETURN_IF_ERROR(CheckInput(desc, i));
  outputs = {{.sizes = desc.inputs[0].sizes, .data_type = desc.inputs[0].data_type}};
  return absl::OkStatus();
}

absl::Status InferLocalResponse(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  constexpr uint32_t kMostLocalSize = 65535;
  const uint32_t local_size = desc.number("local_size");
  if (local_size == 0 || local_size > kMostLocalSize) {
    return InvalidField("local_size", absl::StrCat("local_size (", local_size, ") is not 1 to ",
                                                   kMostLocalSize, "."));
  }
  return Infer(desc, outputs);
}

}  // namespace

constinit const OperatorSchema kMeanVarianceNormalizationSchema = {
    .name = "mean_variance_normalization",
    .summary = "scale * (x - mean) / sqrt(variance + epsilon) + bias over the axes",
    .inputs = kMeanVarianceInputs,
    .outputs = kOutputs,
    .attributes = kMeanVarianceAttributes,
    .family = OperatorFamily::kNormalization,
    .support = kMeanVarianceSupport,
    .infer = &Infer};
constinit const OperatorSchema kBatchNormalizationSchema = {
    .name = "batch_normalization",
    .summary = "scale * (x - mean) / sqrt(variance + epsilon) + bias",
    .inputs = kBatchInputs,
    .outputs = kOutputs,
    .attributes = kBatchAttributes,
    .family = OperatorFamily::kNormalization,
    .support = kBatchSupport,
    .infer = &Infer};
constinit const OperatorSchema kLocalResponseNormalizationSchema = {
    .name = "local_response_normalization",
    .summary = "x / (bias + alpha / local_size * the sum of squares around x)^beta",
    .inputs = kLocalResponseInputs,
    .outputs = kOutputs,
    .attributes = kLocalResponseAttributes,
    .family = OperatorFamily::kNormalization,
    .support = kLocalResponseSupport,
    .infer = &InferLocalResponse};

std::vector<const OperatorSchema*> NormalizationOperators() {
  return {&kMeanVarianceNormalizationSchema, &kBatchNormalizationSchema,
          &kLocalResponseNormalizationSchema};
}

}  // namespace opmill
