#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {
    {.name = "input"}, {.name = "filter"}, {.name = "bias", .optional = true}};
constexpr TensorSchema kOutputs[] = {{.name = "output"}};
constexpr absl::string_view kModes[] = {"CONVOLUTION", "CROSS_CORRELATION"};
constexpr absl::string_view kDirections[] = {"FORWARD", "BACKWARD"};
constexpr AttributeSchema List(absl::string_view name) {
  return {.name = name, .kind = AttributeKind::kNumbers, .default_text = "[]"};
}
constexpr AttributeSchema kAttributes[] = {{.name = "mode",
                                            .kind = AttributeKind::kChoice,
                                            .choices = kModes,
                                            .default_text = "CROSS_CORRELATION"},
                                           {.name = "direction",
                                            .kind = AttributeKind::kChoice,
                                            .choices = kDirections,
                                            .default_text = "FORWARD"},
                                           List("strides"),
                                           List("dilations"),
                                           List("start_padding"),
                                           List("end_padding"),
                                           List("output_padding"),
                                           {.name = "group_count", .default_text = "1"}};

constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k4_0, 3, 5, kFloats},
                                     {FeatureLevel::k1_0, 4, 5, kFloats}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

absl::Status CheckLikeInput(const OperatorDesc& desc, size_t other) {
  RETURN_IF_ERROR(CheckRank(desc, other));
  return CheckType(desc, other);
}

absl::Status CheckList(absl::string_view name, const std::vector<uint32_t>& list, size_t count,
                       uint32_t least) {
  if (list.size() != count) {
    return InvalidField(name, absl::StrCat(name, " has ", list.size(), " numbers, but input has ",
                                           count, " spatial dimensions."));
  }
  for (size_t i = 0; i < count; ++i) {
    if (list[i] >= least) continue;
    const std::string field = absl::StrCat(name, "[", i, "]");
    return InvalidField(field, absl::StrCat(field, " (", list[i], ") is below ", least, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckLists(const ConvolutionDesc& desc) {
  const size_t count = desc.input.sizes.size() - 2;
  RETURN_IF_ERROR(CheckList("strides", desc.strides, count, 1));
  RETURN_IF_ERROR(CheckList("dilations", desc.dilations, count, 1));
  RETURN_IF_ERROR(CheckList("start_padding", desc.start_padding, count, 0));
  RETURN_IF_ERROR(CheckList("end_padding", desc.end_padding, count, 0));
  RETURN_IF_ERROR(CheckList("output_padding", desc.output_padding, count, 0));
  for (size_t i = 0; i < count; ++i) {
    if (desc.is_backward() || desc.output_padding[i] == 0) continue;
    const std::string field = absl::StrCat("output_padding[", i, "]");
    return InvalidField(field, absl::StrCat(field, " is ", desc.output_padding[i],
                                            ", but direction FORWARD takes no output padding."));
  }
  return absl::OkStatus();
}

absl::Status CheckChannels(const ConvolutionDesc& desc) {
  const uint32_t groups = desc.group_count;
  if (groups == 0) return InvalidField("group_count", "group_count (0) is below 1.");
  const uint32_t channels = desc.input.sizes[1];
  if (channels % groups != 0) {
    return InvalidField("group_count",
                        absl::StrCat("group_count (", groups,
                                     ") does not divide the input channels (", channels, ")."));
  }
  if (!desc.is_backward() && desc.filter.sizes[0] % groups != 0) {
    return InvalidField("group_count",
                        absl::StrCat("group_count (", groups, ") does not divide filter.sizes[0] (",
                                     desc.filter.sizes[0], ")."));
  }
  const size_t axis = desc.is_backward() ? 0 : 1;
  const uint32_t wanted = desc.is_backward() ? channels : channels / groups;
  if (desc.filter.sizes[axis] == wanted) return absl::OkStatus();
  const std::string field = absl::StrCat("filter.sizes[", axis, "]");
  return InvalidField(
      field, absl::StrCat(field, " is ", desc.filter.sizes[axis], ", but the input has ", wanted,
                          desc.is_backward() ? " channels." : " channels in a group."));
}

// A device keeps a list of the taps.
absl::Status CheckWindow(const TensorDesc& filter) {
  constexpr uint64_t kMostTaps = uint64_t{1} << 16;
  uint64_t taps = 1;
  for (size_t d = 2; d < filter.sizes.size(); ++d) {
    taps *= filter.sizes[d];
    if (taps <= kMostTaps) continue;
    return InvalidField("filter.sizes", absl::StrCat("filter.sizes gives a window of ", taps,
                                                     " elements; the limit is ", kMostTaps, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckBias(const TensorDesc& bias, uint32_t channels) {
  for (size_t d = 0; d < bias.sizes.size(); ++d) {
    const uint32_t wanted = d == 1 ? channels : 1;
    if (bias.sizes[d] == wanted) continue;
    const std::string field = absl::StrCat("bias.sizes[", d, "]");
    return InvalidField(field, absl::StrCat(field, " is ", bias.sizes[d], ", but a bias for ",
                                            channels, " output channels has ", wanted, " there."));
  }
  return absl::OkStatus();
}

// The size of the output along a spatial dimension.
absl::StatusOr<uint32_t> OutputSize(const ConvolutionDesc& desc, size_t axis) {
  const uint64_t input = desc.input.sizes[axis + 2];
  const uint64_t padding = uint64_t{desc.start_padding[axis]} + desc.end_padding[axis];
  const uint64_t span = uint64_t{desc.dilations[axis]} * (desc.filter.sizes[axis + 2] - 1) + 1;
  const std::string field = absl::StrCat("filter.sizes[", axis + 2, "]");
  if (!desc.is_backward()) {
    if (span > input + padding) {
      return InvalidField(
          field, absl::StrCat("The filter covers ", span, " elements of dimension ", axis + 2,
                              ", more than the padded input has (", input + padding, ")."));
    }
    return static_cast<uint32_t>(std::min<uint64_t>(
        (input + padding - span) / desc.strides[axis] + 1, std::numeric_limits<uint32_t>::max()));
  }
  const uint64_t moved = (input - 1) * desc.strides[axis];
  const uint64_t padded = desc.output_padding[axis];
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (span > 2 * kMost || moved > 2 * kMost || moved + span + padded > kMost + padding) {
    return InvalidField(field, absl::StrCat("The output would be larger than ", kMost,
                                            " along dimension ", axis + 2, "."));
  }
  if (moved + span + padded <= padding) {
    return InvalidField(
        absl::StrCat("start_padding[", axis, "]"),
        absl::StrCat("The padding of dimension ", axis + 2, " (", padding,
                     ") leaves nothing of the output (", moved + span + padded, ")."));
  }
  return static_cast<uint32_t>(moved + span + padded - padding);
}

absl::Status Infer(const OperatorDesc& operator_desc, std::vector<InferredOutput>& outputs) {
  const size_t rank = operator_desc.inputs[0].sizes.size();
  if (rank < 3) {
    return InvalidField("input.sizes",
                        absl::StrCat("input.sizes has ", rank,
                                     " dimensions; a batch, a channel and a spatial dimension are "
                                     "the least."));
  }
  const ConvolutionDesc desc = ConvolutionDesc::From(operator_desc);
  RETURN_IF_ERROR(CheckLikeInput(operator_desc, 1));
  RETURN_IF_ERROR(CheckLists(desc));
  RETURN_IF_ERROR(CheckChannels(desc));
  RETURN_IF_ERROR(CheckWindow(desc.filter));
  const uint64_t channels =
      desc.is_backward() ? uint64_t{desc.filter.sizes[1]} * desc.group_count : desc.filter.sizes[0];
  if (channels > std::numeric_limits<uint32_t>::max()) {
    return InvalidField("group_count", absl::StrCat("group_count (", desc.group_count, ") gives ",
                                                    channels, " output channels."));
  }
  if (desc.bias.has_value()) {
    RETURN_IF_ERROR(CheckLikeInput(operator_desc, 2));
    RETURN_IF_ERROR(CheckBias(*desc.bias, static_cast<uint32_t>(channels)));
  }
  std::vector<uint32_t> sizes = {desc.input.sizes[0], static_cast<uint32_t>(channels)};
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    ASSIGN_OR_RETURN(const uint32_t size, OutputSize(desc, axis));
    sizes.push_back(size);
  }
  RETURN_IF_ERROR(CheckTensor({desc.input.data_type, sizes, {}}, "output"));
  outputs = {{.sizes = std::move(sizes), .data_type = desc.input.data_type}};
  return absl::OkStatus();
}

}  // namespace

constinit const OperatorSchema kConvolutionSchema = {
    .name = "convolution",
    .alias = "conv",
    .summary = "the sums of an image's patches, each weighted by the filter",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kAttributes,
    .family = OperatorFamily::kConvolution,
    .support = kSupport,
    .infer = &Infer};

std::vector<const OperatorSchema*> ConvolutionOperators() { return {&kConvolutionSchema}; }

ConvolutionDesc::operator OperatorDesc() const {
  OperatorDesc desc = {
      .schema = &kConvolutionSchema,
      .inputs = {input, filter},
      .outputs = {output},
      .attributes = {static_cast<uint32_t>(mode), static_cast<uint32_t>(direction), strides,
                     dilations, start_padding, end_padding, output_padding, group_count}};
  if (bias.has_value()) desc.inputs.push_back(*bias);
  return desc;
}

ConvolutionDesc ConvolutionDesc::From(const OperatorDesc& desc) {
  const size_t count = desc.inputs[0].sizes.size() - 2;
  const auto list = [&](absl::string_view name, uint32_t number) {
    const std::vector<uint32_t>& given = desc.list(name);
    return given.empty() ? std::vector<uint32_t>(count, number) : given;
  };
  ConvolutionDesc convolution = {.input = desc.inputs[0],
                                 .filter = desc.inputs[1],
                                 .output = desc.outputs[0],
                                 .mode = desc.choice<ConvolutionMode>("mode"),
                                 .direction = desc.choice<ConvolutionDirection>("direction"),
                                 .strides = list("strides", 1),
                                 .dilations = list("dilations", 1),
                                 .start_padding = list("start_padding", 0),
                                 .end_padding = list("end_padding", 0),
                                 .output_padding = list("output_padding", 0),
                                 .group_count = desc.number("group_count")};
  if (desc.inputs.size() > 2) convolution.bias = desc.inputs[2];
  return convolution;
}

ConvolutionShape ShapeOf(const ConvolutionDesc& desc) {
  const std::vector<uint32_t> input = EffectiveStrides(desc.input);
  const std::vector<uint32_t> filter = EffectiveStrides(desc.filter);
  const std::vector<uint32_t> output = EffectiveStrides(*desc.output);
  const bool is_backward = desc.is_backward();
  ConvolutionShape shape = {.batches = desc.input.sizes[0],
                            .groups = desc.group_count,
                            .input_channels = desc.input.sizes[1] / desc.group_count,
                            .output_channels = desc.output->sizes[1] / desc.group_count,
                            .input_batch_stride = input[0],
                            .input_channel_stride = input[1],
                            .filter_output_stride = filter[is_backward ? 1 : 0],
                            .filter_input_stride = filter[is_backward ? 0 : 1],
                            .output_batch_stride = output[0],
                            .output_channel_stride = output[1],
                            .reverses_filter = desc.mode == ConvolutionMode::kConvolution};
  shape.filter_group_stride =
      uint64_t{filter[0]} * (is_backward ? shape.input_channels : shape.output_channels);
  if (desc.bias.has_value()) shape.bias_stride = EffectiveStrides(*desc.bias)[1];
  const size_t count = desc.strides.size();
  for (size_t i = 0; i < count; ++i) {
    shape.axes[3 - count + i] = {.input = desc.input.sizes[i + 2],
                                 .filter = desc.filter.sizes[i + 2],
                                 .output = desc.output->sizes[i + 2],
                                 .stride = desc.strides[i],
                                 .dilation = desc.dilations[i],
                                 .start_padding = desc.start_padding[i],
                                 .input_stride = input[i + 2],
                                 .filter_stride = filter[i + 2],
                                 .output_stride = output[i + 2]};
  }
  return shape;
}

ProductDims ConvolutionShape::BatchDims() const {
  return {{batches, {0, input_batch_stride, 0, output_batch_stride}},
          {groups,
           {filter_group_stride, uint64_t{input_channels} * input_channel_stride,
            uint64_t{output_channels} * bias_stride,
            uint64_t{output_channels} * output_channel_stride}}};
}

}  // namespace opmill
