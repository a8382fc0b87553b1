// The descriptors of pooling operators in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_DESC_H_
#define OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_DESC_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/operator_schema.h"
#include "shaders/pooling_constants.h"

namespace opmill {

extern const OperatorSchema kMaxPoolingSchema;
extern const OperatorSchema kMaxPoolingWithIndicesSchema;
extern const OperatorSchema kAveragePoolingSchema;
extern const OperatorSchema kLpPoolingSchema;

enum class PoolingFunction : uint32_t {
  kMax = POOLING_MAX,
  kMaxWithIndices = POOLING_MAX_WITH_INDICES,
  kAverage = POOLING_AVERAGE,
};

// How windows lie along a dimension: element k of the window of result i is at
// i * stride + k * dilation - start_padding, if that is in the input.
struct WindowDim {
  uint32_t stride = 1;
  uint32_t window = 1;
  uint32_t start_padding = 0;
  uint32_t end_padding = 0;
  uint32_t dilation = 1;

  uint64_t extent() const { return uint64_t{window - 1} * dilation + 1; }

  // The elements of the window of a result that are in an input of this size: `count` of them, from
  // the position `first` on.
  struct Elements {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  Elements ElementsOf(uint64_t result, uint64_t size) const {
    const uint64_t start = result * stride;
    const uint64_t end = size + start_padding;
    if (start >= end) return {};
    const auto steps_of = [&](uint64_t places) {  // a division takes long
      return dilation == 1 ? places : CeilDiv(places, uint64_t{dilation});
    };
    const uint64_t before = start < start_padding ? steps_of(start_padding - start) : 0;
    const uint64_t all = std::min<uint64_t>(steps_of(end - start), window);
    if (before >= all) return {};
    return {.first = start + before * dilation - start_padding, .count = all - before};
  }
};

// The attributes that all pooling operators have.
inline constexpr AttributeSchema kWindowAttributes[] = {
    {.name = "strides", .kind = AttributeKind::kNumbers, .default_text = "1"},
    {.name = "window_size", .kind = AttributeKind::kNumbers},
    {.name = "start_padding", .kind = AttributeKind::kNumbers, .default_text = "0"},
    {.name = "end_padding", .kind = AttributeKind::kNumbers, .default_text = "0"},
    {.name = "dilations", .kind = AttributeKind::kNumbers, .default_text = "1"}};

// The windows along the spatial dimensions, which follow the first two.
std::vector<WindowDim> WindowsOf(const OperatorDesc& desc);
// Checks these attributes and the rank, and infers the outputs: of the input's type, and if there
// is a second one, indices.
absl::Status InferPooling(const OperatorDesc& desc, std::vector<InferredOutput>& outputs);
// DirectML's older versions of these operators have no dilations.
inline constexpr absl::string_view kWithoutDilations = "dilations are 1";
std::optional<Breach> FindDilations(const OperatorDesc& desc);

// DML_OPERATOR_MAX_POOLING2, _AVERAGE_POOLING1, and of the reference also _LP_POOLING1. All tensors
// have the five dimensions batch, channel, depth, height and width; without a depth, that has
// size 1.
struct PoolingDesc {
  static constexpr size_t kRank = 5;
  static constexpr size_t kKept = 2;  // dimensions without windows

  PoolingFunction function = PoolingFunction::kMax;
  TensorDesc input;
  TensorDesc output;
  std::optional<TensorDesc> indices;
  std::array<WindowDim, kRank> windows;
  bool include_padding = false;

  // What the sum of a window is divided by: its size; 0: by the number of its elements in the
  // input.
  uint32_t divisor() const {
    uint32_t divisor = include_padding ? 1 : 0;
    for (const WindowDim& dim : windows) divisor *= dim.window;
    return divisor;
  }

  static PoolingDesc From(const OperatorDesc& validated);
};

// What max_pooling gives for a window without elements: the type's smallest number, -inf for
// floats.
uint64_t LowestBits(DataType type);

// average_pooling with the windows of the spatial dimensions.
OperatorDesc DescribeAveragePooling(TensorDesc input, TensorDesc output,
                                    const std::vector<WindowDim>& windows, bool include_padding);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_DESC_H_
