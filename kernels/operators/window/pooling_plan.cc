// pooling: one dispatch per slice, a lane for each result.
#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/operators/window/pooling_desc.h"
#include "kernels/plan/fold.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/pooling_constants.h"

namespace opmill {
namespace {

constexpr size_t kRank = PoolingDesc::kRank;

// A lane reads a window alone, which no device may take seconds for. Not measured.
constexpr uint64_t kMostElements = uint64_t{1} << 20;

// A dimension of a slice: its results, and the elements of the input that they need.
struct SliceDim {
  uint64_t first = 0;
  uint64_t count = 1;
  uint64_t low = 0;
  uint64_t high = 0;
};
using PoolingSlice = std::array<SliceDim, kRank>;

class Planner {
 public:
  Planner(PlanBuilder& builder, const PoolingDesc& desc)
      : builder_(builder), desc_(desc), limits_(Limits()) {}

  absl::Status Add(PoolingSlice slice) {
    if (builder_.full()) return absl::OkStatus();
    for (size_t d = 0; d < kRank; ++d) SetNeeded(d, slice[d]);
    const uint64_t read = InputSpan(slice);
    if (read >= limits_.elements[kInputTensor]) {
      return AddHalves(slice, desc_.input.strides, [&] {
        return absl::ResourceExhaustedError(
            absl::StrCat("A window spans ", read, " elements of the input; a view has room for ",
                         limits_.elements[kInputTensor], "."));
      });
    }
    for (const TensorDesc* const output : {&desc_.output, IndicesOrOutput()}) {
      if (OutputSpan(slice, *output) < limits_.elements[kOutputTensor]) continue;
      return AddHalves(slice, output->strides, [] { return absl::OkStatus(); });
    }
    AddDispatch(slice);
    return absl::OkStatus();
  }

 private:
  SliceLimits Limits() const {
    SliceLimits limits =
        LimitsFor(desc_.input.data_type, desc_.output.data_type, builder_.options());
    const uint64_t view = builder_.options().max_view_elements;
    limits.elements[kOutputTensor] = std::min(view - kVectorBytes, kMaxLanes / 2);
    return limits;
  }

  const TensorDesc* IndicesOrOutput() const {
    return desc_.indices.has_value() ? &*desc_.indices : &desc_.output;
  }

  void SetNeeded(size_t d, SliceDim& dim) const {
    const WindowDim& window = desc_.windows[d];
    const auto clamp = [&](uint64_t padded) {
      const uint64_t at = padded - std::min<uint64_t>(padded, window.start_padding);
      return std::min<uint64_t>(at, desc_.input.sizes[d] - 1);
    };
    dim.low = clamp(dim.first * window.stride);
    dim.high = clamp((dim.first + dim.count - 1) * window.stride + window.extent() - 1);
  }

  uint64_t InputSpan(const PoolingSlice& slice) const {
    uint64_t span = 0;
    for (size_t d = 0; d < kRank; ++d) {
      span += (slice[d].high - slice[d].low) * desc_.input.strides[d];
    }
    return span;
  }
  static uint64_t OutputSpan(const PoolingSlice& slice, const TensorDesc& output) {
    uint64_t span = 0;
    for (size_t d = 0; d < kRank; ++d) span += (slice[d].count - 1) * output.strides[d];
    return span;
  }

  // Cuts the dimension along which the results reach farthest.
  template <typename Refuse>
  absl::Status AddHalves(const PoolingSlice& slice, const std::vector<uint32_t>& strides,
                         Refuse refuse) {
    size_t cut = 0;
    uint64_t farthest = 0;
    for (size_t d = 0; d < kRank; ++d) {
      const uint64_t reach = (slice[d].count - 1) * std::max<uint64_t>(strides[d], 1);
      if (reach <= farthest) continue;
      farthest = reach;
      cut = d;
    }
    if (farthest == 0) return refuse();
    PoolingSlice lower = slice;
    PoolingSlice upper = slice;
    lower[cut].count = CeilDiv(slice[cut].count, uint64_t{2});
    upper[cut].first += lower[cut].count;
    upper[cut].count -= lower[cut].count;
    const absl::Status status = Add(lower);
    return status.ok() ? Add(upper) : status;
  }

  PlacedView Place(const PoolingSlice& slice, const TensorDesc& output, uint32_t index) const {
    uint64_t base = 0;
    for (size_t d = 0; d < kRank; ++d) base += slice[d].first * output.strides[d];
    return WriteElements(BufferRole::Output(index), output.data_type, base,
                         OutputSpan(slice, output));
  }

  void AddDispatch(const PoolingSlice& slice) {
    uint64_t input_base = 0;
    uint64_t results = 1;
    for (size_t d = 0; d < kRank; ++d) {
      input_base += slice[d].low * desc_.input.strides[d];
      results *= slice[d].count;
    }
    const PlacedView input = ReadElements(desc_.input.data_type, input_base, InputSpan(slice));
    const PlacedView output = Place(slice, desc_.output, 0);
    PoolingConstants constants = {.input_base = input.base, .output_base = output.base};
    const std::vector<uint32_t> positions = PackedStrides(desc_.input.sizes);
    for (size_t d = 0; d < kRank; ++d) {
      const WindowDim& window = desc_.windows[d];
      const uint32_t stride = desc_.input.strides[d];
      constants.dims[d] = {
          .count = static_cast<uint32_t>(slice[d].count),
          .output_stride = desc_.output.strides[d],
          .indices_stride = desc_.indices.has_value() ? desc_.indices->strides[d] : 0,
          .input_stride = stride,
          .position_stride = positions[d],
          .input_size = desc_.input.sizes[d],
          .window = window.window,
          .step = window.stride,
          .dilation = window.dilation,
          .padding = window.start_padding,
          .first = static_cast<uint32_t>(slice[d].first)};
      constants.input_base -= static_cast<uint32_t>(slice[d].low) * stride;
    }
    constants.divisor = desc_.divisor();
    KernelPermutation kernel = {
        .shader = "pooling",
        .entry = "Pool",
        .macros = {{"DATA_TYPE", static_cast<uint32_t>(desc_.input.data_type)},
                   {"FUNCTION", static_cast<uint32_t>(desc_.function)},
                   {"THREADS", builder_.options().threads}}};
    Dispatch dispatch;
    dispatch.reads[0] = input.view;
    dispatch.writes[0] = output.view;
    if (desc_.indices.has_value()) {
      kernel.macros.push_back({"INDEX_BYTES", ElementBytes(desc_.indices->data_type)});
      const PlacedView indices = Place(slice, *desc_.indices, 1);
      dispatch.writes[1] = indices.view;
      constants.indices_base = indices.base;
    }
    dispatch.kernel = builder_.Kernel(std::move(kernel));
    dispatch.constants = constants;
    DealUnits(dispatch, results, builder_.options().threads);
    builder_.Add(std::move(dispatch));
  }

  PlanBuilder& builder_;
  const PoolingDesc& desc_;
  const SliceLimits limits_;
};

}  // namespace

absl::Status PlanPooling(PlanBuilder& builder, const OperatorDesc& validated) {
  const PoolingDesc desc = PoolingDesc::From(validated);
  uint64_t elements = 1;
  for (size_t d = 0; d < kRank; ++d) {
    elements *= std::min(desc.windows[d].window, desc.input.sizes[d]);
  }
  if (elements > kMostElements) {
    return absl::ResourceExhaustedError(absl::StrCat("A window has ", elements,
                                                     " elements; the limit of a GPU is ",
                                                     kMostElements, ". reduce has no such limit."));
  }
  FillGaps(builder, BufferRole::Output(), desc.output);
  if (desc.indices.has_value()) FillGaps(builder, BufferRole::Output(1), *desc.indices);
  PoolingSlice whole;
  for (size_t d = 0; d < PoolingDesc::kRank; ++d) whole[d].count = desc.output.sizes[d];
  return Planner(builder, desc).Add(whole);
}

}  // namespace opmill
