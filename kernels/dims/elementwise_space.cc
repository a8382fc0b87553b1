#include "kernels/dims/elementwise_space.h"

#include <algorithm>

#include "kernels/base/rounding.h"
#include "kernels/dims/collapse.h"
#include "kernels/dims/iteration_space.h"

namespace opmill {
namespace {

using Dim = ElementwiseSpace::Dim;

bool WalksAsOne(const Dim& outer, const Dim& inner) {
  for (size_t t = 0; t < outer.strides.size(); ++t) {
    if (outer.strides[t] != inner.size * inner.strides[t]) return false;
  }
  return true;
}

uint64_t Reach(const Dim& dim, size_t tensor) { return (dim.size - 1) * dim.strides[tensor]; }

void AppendSlices(const ElementwiseSpace& space, const PerTensor<uint64_t>& limits,
                  uint64_t row_step, std::vector<ElementwiseSpace>& slices) {
  if (slices.size() >= kMaxSlices) return;
  for (size_t t = 0; t < limits.size(); ++t) {
    if (space.Span(t) < limits[t]) continue;
    const auto cut =
        std::max_element(space.dims.begin(), space.dims.end(),
                         [t](const Dim& x, const Dim& y) { return Reach(x, t) < Reach(y, t); });
    const size_t d = static_cast<size_t>(cut - space.dims.begin());
    const bool is_row = d + 1 == space.dims.size();
    const uint64_t half = RoundUp(CeilDiv(cut->size, uint64_t{2}), is_row ? row_step : uint64_t{1});
    ElementwiseSpace lower = space;
    ElementwiseSpace upper = space;
    lower.dims[d].size = half;
    upper.dims[d].size = cut->size - half;
    for (size_t i = 0; i < upper.bases.size(); ++i) upper.bases[i] += half * cut->strides[i];
    AppendSlices(lower, limits, row_step, slices);
    AppendSlices(upper, limits, row_step, slices);
    return;
  }
  slices.push_back(space);
}

}  // namespace

uint64_t ElementwiseSpace::ElementCount() const {
  uint64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size;
  return count;
}

uint64_t ElementwiseSpace::Span(size_t tensor) const {
  uint64_t span = 0;
  for (const Dim& dim : dims) span += Reach(dim, tensor);
  return span;
}

ElementwiseSpace MakeElementwiseSpace(absl::Span<const TensorDesc> inputs,
                                      const TensorDesc& output) {
  std::vector<Dim> dims(output.sizes.size());
  const auto set_strides = [&](size_t tensor, const TensorDesc& desc) {
    const std::vector<uint32_t> strides = EffectiveStrides(desc);
    for (size_t d = 0; d < dims.size(); ++d) dims[d].strides[tensor] = strides[d];
  };
  for (size_t i = 0; i < inputs.size(); ++i) set_strides(i, inputs[i]);
  set_strides(kTensorOutput, output);
  for (size_t d = 0; d < dims.size(); ++d) dims[d].size = output.sizes[d];
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& x, const Dim& y) {
    return x.strides[kTensorOutput] > y.strides[kTensorOutput];
  });
  ElementwiseSpace space = {.dims = Collapse(dims, WalksAsOne)};
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

std::vector<ElementwiseSpace> Slice(const ElementwiseSpace& space,
                                    const PerTensor<uint64_t>& limits, uint64_t row_step) {
  std::vector<ElementwiseSpace> slices;
  AppendSlices(space, limits, row_step, slices);
  return slices;
}

}  // namespace opmill
