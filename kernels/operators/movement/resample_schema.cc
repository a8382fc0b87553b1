#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr double kOne = 4294967296.0;  // with 32 binary digits
// Positions this close to an integer are that integer, so that rounded scales do not matter.
constexpr double kTolerance = 1.0 / 4096;

constexpr absl::string_view kModes[] = {"NEAREST_NEIGHBOR"};
constexpr AttributeSchema kAttributes[] = {
    {.name = "interpolation_mode",
     .kind = AttributeKind::kChoice,
     .choices = kModes,
     .default_text = "NEAREST_NEIGHBOR"},
    {.name = "rounding_direction",
     .kind = AttributeKind::kChoice,
     .choices = kAxisDirections,
     .default_text = "DECREASING"},
    {.name = "scales", .kind = AttributeKind::kFloatNumbers},
    {.name = "input_pixel_offsets", .kind = AttributeKind::kFloatNumbers},
    {.name = "output_pixel_offsets", .kind = AttributeKind::kFloatNumbers}};
constexpr FeatureLevelRow kRows[] = {
    {FeatureLevel::k6_2, 1, 4, kFloats | DataTypeSet{DataType::kInt8, DataType::kUint8}},
    {FeatureLevel::k5_1, 1, 4, kFloats}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

const std::vector<float>& ListOf(const OperatorDesc& desc, absl::string_view attribute) {
  return desc.value<std::vector<float>>(attribute);
}

// The position in the input of output position 0, before it is rounded.
double OriginOf(const OperatorDesc& desc, size_t d) {
  return -static_cast<double>(ListOf(desc, "output_pixel_offsets")[d]) / ListOf(desc, "scales")[d] -
         ListOf(desc, "input_pixel_offsets")[d];
}

absl::Status CheckScale(const OperatorDesc& desc, size_t d, uint64_t output_size) {
  const float scale = ListOf(desc, "scales")[d];
  if (!(scale > 0) || std::isinf(scale)) {
    const std::string field = absl::StrCat("scales[", d, "]");
    return InvalidField(field, absl::StrCat(field, " (", scale, ") is not a number above 0."));
  }
  const double farthest = OriginOf(desc, d) + static_cast<double>(output_size) / scale;
  for (const double position : {OriginOf(desc, d), farthest}) {
    if (std::abs(position) < kMaxMoveSize) continue;
    const std::string field = absl::StrCat("scales[", d, "]");
    return InvalidField(
        field, absl::StrCat(field, " (", scale, ") and the offsets lead to position ", position,
                            " of the input; the limit is ", kMaxMoveSize, "."));
  }
  return absl::OkStatus();
}

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  for (const char* const list : {"scales", "input_pixel_offsets", "output_pixel_offsets"}) {
    RETURN_IF_ERROR(CheckEntries(desc, list));
  }
  const std::vector<uint32_t>& input = desc.inputs[0].sizes;
  const std::optional<TensorDesc>& output = desc.outputs[0];
  std::vector<uint64_t> sizes;
  for (size_t d = 0; d < input.size(); ++d) {
    const double scaled =
        std::floor(static_cast<double>(input[d]) * ListOf(desc, "scales")[d] + kTolerance);
    uint64_t size = scaled > kMaxMoveSize ? uint64_t{kMaxMoveSize} + 1
                    : scaled >= 1         ? static_cast<uint64_t>(scaled)
                                          : 1;
    // Any size is allowed: the input is cropped, or its edges are repeated.
    if (output.has_value() && output->sizes.size() == input.size()) size = output->sizes[d];
    RETURN_IF_ERROR(CheckScale(desc, d, size));
    sizes.push_back(size);
  }
  return InferSizes(desc, sizes, outputs);
}

}  // namespace

constinit const OperatorSchema kResampleSchema = {
    .name = "resample2",
    .summary = "the input, scaled: the nearest elements",
    .inputs = kMovedInput,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> ResampleMoves(const OperatorDesc& desc) {
  const bool rounds_up =
      desc.choice<AxisDirection>("rounding_direction") == AxisDirection::kIncreasing;
  Move move = PlainMove(desc.inputs[0], *desc.outputs[0]);
  for (size_t d = 0; d < move.dims.size(); ++d) {
    MoveDim& dim = move.dims[d];
    const double scale = ListOf(desc, "scales")[d];
    const double origin = OriginOf(desc, d);
    if (scale == 1 && origin == 0 && dim.size == dim.input_size) continue;
    dim.rule = MoveRule::kNearest;
    dim.scale = static_cast<uint64_t>(std::llround(kOne / scale));
    dim.origin = std::llround((origin + (rounds_up ? -kTolerance : kTolerance)) * kOne);
    if (rounds_up) dim.origin += (int64_t{1} << 32) - 1;
  }
  return {move};
}

}  // namespace opmill
