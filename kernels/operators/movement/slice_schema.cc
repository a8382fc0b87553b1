#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr AttributeSchema kAttributes[] = {
    {.name = "input_window_offsets", .kind = AttributeKind::kNumbers},
    {.name = "input_window_sizes", .kind = AttributeKind::kNumbers},
    {.name = "input_window_strides", .kind = AttributeKind::kSignedNumbers}};
constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k4_1, 1, 8, kTenTypes},
                                     {FeatureLevel::k3_0, 1, 8, kEightTypes},
                                     {FeatureLevel::k2_1, 4, 5, kEightTypes}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

uint32_t Magnitude(int32_t stride) {
  return stride < 0 ? 0 - static_cast<uint32_t>(stride) : static_cast<uint32_t>(stride);
}

absl::Status CheckWindow(size_t d, uint64_t offset, uint64_t size, int32_t stride,
                         uint32_t input_size) {
  if (size == 0) {
    const std::string field = absl::StrCat("input_window_sizes[", d, "]");
    return InvalidField(field, absl::StrCat(field, " (0) is below 1."));
  }
  if (offset + size > input_size) {
    return InvalidField(
        absl::StrCat("input_window_sizes[", d, "]"),
        absl::StrCat("input_window_offsets[", d, "] (", offset, ") + input_window_sizes[", d, "] (",
                     size, ") is above input.sizes[", d, "] (", input_size, ")."));
  }
  if (stride == 0) {
    const std::string field = absl::StrCat("input_window_strides[", d, "]");
    return InvalidField(field, absl::StrCat(field, " is 0."));
  }
  return absl::OkStatus();
}

// By default the output has all elements of the window that the strides reach. It may have fewer.
absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  for (const AttributeSchema& attribute : kAttributes) {
    RETURN_IF_ERROR(CheckEntries(desc, attribute.name));
  }
  const auto& strides = desc.value<std::vector<int32_t>>("input_window_strides");
  std::vector<uint64_t> sizes;
  for (size_t d = 0; d < strides.size(); ++d) {
    const uint32_t size = desc.list("input_window_sizes")[d];
    RETURN_IF_ERROR(CheckWindow(d, desc.list("input_window_offsets")[d], size, strides[d],
                                desc.inputs[0].sizes[d]));
    sizes.push_back(1 + (size - 1) / Magnitude(strides[d]));
  }
  if (desc.outputs[0].has_value() && desc.outputs[0]->sizes.size() == sizes.size()) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      const uint32_t size = desc.outputs[0]->sizes[d];
      if (size >= 1 && size < sizes[d]) sizes[d] = size;
    }
  }
  return InferSizes(desc, sizes, outputs);
}

}  // namespace

constinit const OperatorSchema kSliceSchema = {
    .name = "slice1",
    .summary = "the elements of a window, with steps that may be negative",
    .inputs = kMovedInput,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> SliceMoves(const OperatorDesc& desc) {
  Move move = PlainMove(desc.inputs[0], *desc.outputs[0]);
  for (size_t d = 0; d < move.dims.size(); ++d) {
    const int32_t stride = desc.value<std::vector<int32_t>>("input_window_strides")[d];
    uint64_t start = desc.list("input_window_offsets")[d];
    if (stride < 0) start += desc.list("input_window_sizes")[d] - 1;
    uint64_t& step = move.dims[d].strides[kInputTensor];
    move.bases[kInputTensor] += start * step;
    step *= static_cast<uint64_t>(int64_t{stride});
  }
  return {move};
}

}  // namespace opmill
