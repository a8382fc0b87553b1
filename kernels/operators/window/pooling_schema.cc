#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/window/pooling_desc.h"

namespace opmill {
namespace {

using enum FeatureLevel;

constexpr size_t kKept = PoolingDesc::kKept;

constexpr TensorSchema kInputs[] = {{.name = "input"}};
constexpr TensorSchema kOutputs[] = {{.name = "output"}};
constexpr TensorSchema kIndexedOutputs[] = {
    {.name = "output"}, {.name = "output_indices", .type = TypeVariable::kIndex}};
constexpr AttributeSchema kAverageAttributes[] = {
    kWindowAttributes[0], kWindowAttributes[1],
    kWindowAttributes[2], kWindowAttributes[3],
    kWindowAttributes[4], {.name = "include_padding", .kind = AttributeKind::kFlag}};

constexpr DataTypeSet kFourTypes = kFloats | DataTypeSet{DataType::kInt8, DataType::kUint8};
constexpr DataTypeSet kWord = {DataType::kUint32};
constexpr DataTypeSet kWords = {DataType::kUint32, DataType::kUint64};

constexpr FeatureLevelRow kMax2Rows[] = {
    {k5_0, 4, 5, kTenTypes}, {k3_0, 4, 5, kFourTypes}, {k2_1, 4, 5, kFloats}};
constexpr FeatureLevelRow kMaxRows[] = {
    {k5_0, 4, 5, kTenTypes}, {k3_0, 4, 5, kFourTypes}, {k1_0, 4, 5, kFloats}};
constexpr SupportTable kMaxSupport[] = {
    {.rows = kMax2Rows},
    {.rows = kMaxRows, .condition = kWithoutDilations, .find_breach = &FindDilations}};

constexpr FeatureLevelRow kIndices2Rows[] = {
    {k5_0, 4, 5, kTenTypes, kWords}, {k3_0, 4, 5, kFourTypes, kWord}, {k2_1, 4, 5, kFloats, kWord}};
constexpr FeatureLevelRow kIndices1Rows[] = {
    {k5_0, 4, 5, kTenTypes, kWords}, {k3_0, 4, 5, kFourTypes, kWord}, {k2_0, 4, 5, kFloats, kWord}};
constexpr SupportTable kIndicesSupport[] = {
    {.rows = kIndices2Rows},
    {.rows = kIndices1Rows, .condition = kWithoutDilations, .find_breach = &FindDilations}};

constexpr FeatureLevelRow kAverage1Rows[] = {{k6_2, 4, 5, kFloats}};
constexpr FeatureLevelRow kAverageRows[] = {{k1_0, 4, 5, kFloats}};
constexpr SupportTable kAverageSupport[] = {
    {.rows = kAverage1Rows},
    {.rows = kAverageRows, .condition = kWithoutDilations, .find_breach = &FindDilations}};

// A list has a number for each spatial dimension, or one for all.
uint32_t NumberFor(const std::vector<uint32_t>& numbers, size_t dim) {
  return numbers.size() == 1 ? numbers[0] : numbers[dim];
}

absl::Status CheckList(const OperatorDesc& desc, absl::string_view name, uint32_t least) {
  const std::vector<uint32_t>& numbers = desc.list(name);
  const size_t spatial = desc.inputs[0].sizes.size() - kKept;
  if (numbers.size() != 1 && numbers.size() != spatial) {
    return InvalidField(
        name, absl::StrCat(name, " has ", numbers.size(), " numbers, but input has ", spatial,
                           " spatial dimensions."));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= least) continue;
    const std::string field = absl::StrCat(name, "[", i, "]");
    return InvalidField(
        field, absl::StrCat(field, " is ", numbers[i], ", but must be at least ", least, "."));
  }
  return absl::OkStatus();
}

// The number of windows along a spatial dimension.
absl::StatusOr<uint32_t> CountWindows(const WindowDim& dim, uint32_t size, size_t i) {
  const uint64_t padded = uint64_t{size} + dim.start_padding + dim.end_padding;
  if (padded > std::numeric_limits<uint32_t>::max()) {
    return InvalidField("start_padding", absl::StrCat("start_padding and end_padding make ", padded,
                                                      " elements of input.sizes[", i + kKept,
                                                      "]; the limit is 4294967295."));
  }
  if (dim.extent() > padded) {
    return InvalidField("window_size",
                        absl::StrCat("The window spans ", dim.extent(), " elements of input.sizes[",
                                     i + kKept, "], which has ", padded, " with its padding."));
  }
  return static_cast<uint32_t>((padded - dim.extent()) / dim.stride + 1);
}

TensorDesc WithFiveDims(TensorDesc tensor) {
  tensor.strides = EffectiveStrides(tensor);
  if (tensor.sizes.size() < PoolingDesc::kRank) {
    tensor.sizes.insert(tensor.sizes.begin() + kKept, 1);
    tensor.strides.insert(tensor.strides.begin() + kKept, 0);
  }
  return tensor;
}

}  // namespace

constinit const OperatorSchema kMaxPoolingSchema = {.name = "max_pooling",
                                                    .summary = "the largest element of each window",
                                                    .inputs = kInputs,
                                                    .outputs = kOutputs,
                                                    .attributes = kWindowAttributes,
                                                    .family = OperatorFamily::kPooling,
                                                    .support = kMaxSupport,
                                                    .infer = &InferPooling};
constinit const OperatorSchema kMaxPoolingWithIndicesSchema = {
    .name = "max_pooling_with_indices",
    .summary = "the largest element of each window, and its position in the input",
    .inputs = kInputs,
    .outputs = kIndexedOutputs,
    .attributes = kWindowAttributes,
    .family = OperatorFamily::kPooling,
    .support = kIndicesSupport,
    .infer = &InferPooling};
constinit const OperatorSchema kAveragePoolingSchema = {
    .name = "average_pooling",
    .summary = "the mean of the elements of each window",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kAverageAttributes,
    .family = OperatorFamily::kPooling,
    .support = kAverageSupport,
    .infer = &InferPooling};

std::vector<const OperatorSchema*> PoolingOperators() {
  return {&kMaxPoolingSchema, &kMaxPoolingWithIndicesSchema, &kAveragePoolingSchema};
}

std::vector<WindowDim> WindowsOf(const OperatorDesc& desc) {
  std::vector<WindowDim> windows(desc.inputs[0].sizes.size() - kKept);
  for (size_t i = 0; i < windows.size(); ++i) {
    windows[i] = {.stride = NumberFor(desc.list("strides"), i),
                  .window = NumberFor(desc.list("window_size"), i),
                  .start_padding = NumberFor(desc.list("start_padding"), i),
                  .end_padding = NumberFor(desc.list("end_padding"), i),
                  .dilation = NumberFor(desc.list("dilations"), i)};
  }
  return windows;
}

absl::Status InferPooling(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const TensorDesc& input = desc.inputs[0];
  const size_t rank = input.sizes.size();
  if (rank != 4 && rank != 5) {
    return InvalidField("input.sizes",
                        absl::StrCat(desc.schema->name,
                                     " takes 4 to 5 dimensions, but input.sizes has ", rank, "."));
  }
  RETURN_IF_ERROR(CheckList(desc, "strides", 1));
  RETURN_IF_ERROR(CheckList(desc, "window_size", 1));
  RETURN_IF_ERROR(CheckList(desc, "start_padding", 0));
  RETURN_IF_ERROR(CheckList(desc, "end_padding", 0));
  RETURN_IF_ERROR(CheckList(desc, "dilations", 1));
  TensorDesc output = {input.data_type, input.sizes, {}};
  const std::vector<WindowDim> windows = WindowsOf(desc);
  uint64_t elements = 1;
  for (size_t i = 0; i < windows.size(); ++i) {
    ASSIGN_OR_RETURN(output.sizes[i + kKept], CountWindows(windows[i], input.sizes[i + kKept], i));
    elements *= windows[i].window;
    if (elements <= kMaxElements) continue;
    return InvalidField("window_size", "window_size has more than 4294967295 elements.");
  }
  RETURN_IF_ERROR(CheckTensor(output, "output"));
  outputs = {{.sizes = output.sizes, .data_type = output.data_type}};
  if (desc.schema->outputs.size() > 1) {
    outputs.push_back(
        {.sizes = output.sizes, .data_type = DataType::kUint32, .type_is_free = true});
  }
  return absl::OkStatus();
}

std::optional<Breach> FindDilations(const OperatorDesc& desc) {
  const std::vector<uint32_t>& dilations = desc.list("dilations");
  if (std::all_of(dilations.begin(), dilations.end(), [](uint32_t d) { return d == 1; })) {
    return std::nullopt;
  }
  return Breach{"dilations", absl::StrCat("takes dilations of 1, but dilations is [",
                                          absl::StrJoin(dilations, ","), "]")};
}

PoolingDesc PoolingDesc::From(const OperatorDesc& validated) {
  const bool is_average = validated.schema == &kAveragePoolingSchema;
  PoolingDesc desc = {.function = is_average ? PoolingFunction::kAverage
                                  : validated.schema == &kMaxPoolingWithIndicesSchema
                                      ? PoolingFunction::kMaxWithIndices
                                      : PoolingFunction::kMax,
                      .input = WithFiveDims(validated.inputs[0]),
                      .output = WithFiveDims(*validated.outputs[0]),
                      .include_padding = is_average && validated.number("include_padding") != 0};
  if (validated.outputs.size() > 1) desc.indices = WithFiveDims(*validated.outputs[1]);
  const std::vector<WindowDim> windows = WindowsOf(validated);
  std::copy(windows.begin(), windows.end(), desc.windows.end() - windows.size());
  return desc;
}

uint64_t LowestBits(DataType type) {
  if (type == DataType::kFloat32) return 0xFF80'0000;
  if (type == DataType::kFloat16) return 0xFC00;
  return IsSigned(type) ? ~uint64_t{0} << (8 * ElementBytes(type) - 1) : 0;
}

OperatorDesc DescribeAveragePooling(TensorDesc input, TensorDesc output,
                                    const std::vector<WindowDim>& windows, bool include_padding) {
  std::vector<uint32_t> lists[std::size(kWindowAttributes)];
  for (const WindowDim& dim : windows) {
    lists[0].push_back(dim.stride);
    lists[1].push_back(dim.window);
    lists[2].push_back(dim.start_padding);
    lists[3].push_back(dim.end_padding);
    lists[4].push_back(dim.dilation);
  }
  OperatorDesc desc = {.schema = &kAveragePoolingSchema,
                       .inputs = {std::move(input)},
                       .outputs = {std::move(output)}};
  for (std::vector<uint32_t>& list : lists) desc.attributes.emplace_back(std::move(list));
  desc.attributes.emplace_back(include_padding ? 1u : 0u);
  return desc;
}

}  // namespace opmill
