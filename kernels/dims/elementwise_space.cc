#include "kernels/dims/elementwise_space.h"

#include "kernels/base/rounding.h"
#include "kernels/dims/iteration_space.h"

namespace opmill {
namespace {

void AppendSlices(const ElementwiseSpace& space, const ElementwiseOffsets& limits,
                  uint64_t row_step, std::vector<ElementwiseSpace>& slices) {
  if (slices.size() >= kMaxSlices) return;
  for (size_t t = 0; t < limits.size(); ++t) {
    if (SpanOf(space.dims, t) < limits[t]) continue;
    const size_t d = LongestDim(space.dims, t);
    const auto& cut = space.dims[d];
    const bool is_row = d + 1 == space.dims.size();
    const uint64_t half = RoundUp(CeilDiv(cut.size, uint64_t{2}), is_row ? row_step : uint64_t{1});
    ElementwiseSpace lower = space;
    ElementwiseSpace upper = space;
    lower.dims[d].size = half;
    upper.dims[d].size = cut.size - half;
    Advance(upper.bases, cut, half);
    AppendSlices(lower, limits, row_step, slices);
    AppendSlices(upper, limits, row_step, slices);
    return;
  }
  slices.push_back(space);
}

}  // namespace

ElementwiseSpace MakeElementwiseSpace(absl::Span<const TensorDesc> inputs,
                                      const TensorDesc& output) {
  ElementwiseSpace space = {.dims = DimsOf<kElementwiseTensors>(output, kTensorOutput)};
  for (size_t i = 0; i < inputs.size(); ++i) SetStrides(space.dims, i, inputs[i]);
  SortByStride(space.dims, kTensorOutput);
  MergeDims(space.dims);
  // A space of a single element still has a row.
  if (space.dims.empty()) {
    space.dims.emplace_back();
    space.dims[0].strides[kTensorOutput] = 1;
    for (size_t i = 0; i < inputs.size(); ++i) space.dims[0].strides[i] = 1;
  }
  return space;
}

bool WalksGroups(const ElementwiseSpace& space, uint64_t group) {
  for (size_t t = 0; t < space.bases.size(); ++t) {
    const uint64_t step = space.row().strides[t];
    if (step > 1 || (step == 0 && t == kTensorOutput)) return false;
    if (step == 0) continue;
    if (space.bases[t] % group != 0) return false;
    for (size_t d = 0; d + 1 < space.dims.size(); ++d) {
      if (space.dims[d].strides[t] % group != 0) return false;
    }
  }
  return true;
}

std::vector<ElementwiseSpace> SliceElementwise(const ElementwiseSpace& space,
                                               const ElementwiseOffsets& limits,
                                               uint64_t row_step) {
  std::vector<ElementwiseSpace> slices;
  AppendSlices(space, limits, row_step, slices);
  return slices;
}

}  // namespace opmill
