#include "kernels/dims/iteration_space.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace opmill {
namespace {

constexpr size_t kTensors[] = {kInputTensor, kOutputTensor, kIndicesTensor};

// Largest strides first; broadcast dimensions (stride 0) outermost, where they affect locality
// least.
void SortByReach(SpaceDims& dims) {
  std::stable_sort(dims.begin(), dims.end(), [](const SpaceDim& a, const SpaceDim& b) {
    const auto key = [](const SpaceDim& d) {
      return std::make_tuple(d.strides[kInputTensor] == 0, d.strides[kInputTensor],
                             d.strides[kOutputTensor]);
    };
    return key(a) > key(b);
  });
}

// Splits the space in two along one of its dimensions; the first half is the larger one.
std::array<IterationSpace, 2> Halves(const IterationSpace& space, SpaceDims IterationSpace::*dims,
                                     size_t d) {
  std::array<IterationSpace, 2> halves = {space, space};
  auto& [lower, upper] = halves;
  const SpaceDim& cut = (space.*dims)[d];
  const uint64_t half = (cut.size + 1) / 2;
  (lower.*dims)[d].size = half;
  (upper.*dims)[d].size = cut.size - half;
  Advance(upper.bases, cut, half);
  for (IterationSpace& part : halves) MergeDims(part.*dims);
  return halves;
}

void AppendKept(const IterationSpace& space, const SliceLimits& limits,
                std::vector<IterationSpace>& slices) {
  if (slices.size() >= kMaxSlices) return;
  // The reduction may be sliced too, so at most half of a limit is used.
  const auto* const too_far = std::ranges::find_if(kTensors, [&](size_t t) {
    const uint64_t limit = limits.elements[t];
    return SpanOf(space.kept, t) + std::min(SpanOf(space.reduced, t), limit / 2) >= limit;
  });
  const bool fits = too_far == std::end(kTensors);
  if (space.kept.empty() || (fits && space.results() <= limits.results)) {
    slices.push_back(space);
    return;
  }
  const size_t d = fits ? 0 : LongestDim(space.kept, *too_far);
  for (const IterationSpace& part : Halves(space, &IterationSpace::kept, d)) {
    AppendKept(part, limits, slices);
  }
}

void AppendReduced(const IterationSpace& space, const SliceLimits& limits,
                   std::vector<IterationSpace>& slices) {
  if (slices.size() >= kMaxSlices) return;
  const auto reaches = [&](size_t t) { return space.Span(t) < limits.elements[t]; };
  const bool fits =
      std::ranges::all_of(kTensors, reaches) && space.position_count() <= limits.positions;
  if (fits || space.reduced.empty()) {
    slices.push_back(space);
    return;
  }
  // Only cuts along the outermost dimension give each part a contiguous range of positions. If
  // positions are not needed, the dimension with the largest span needs the fewest cuts.
  const bool anywhere = space.order == ReducedOrder::kAny && !reaches(kInputTensor);
  const size_t d = anywhere ? LongestDim(space.reduced, kInputTensor) : 0;
  std::array<IterationSpace, 2> halves = Halves(space, &IterationSpace::reduced, d);
  if (space.order == ReducedOrder::kRowMajor) {
    halves[1].first_position += halves[0].position_count();
  }
  for (const IterationSpace& part : halves) AppendReduced(part, limits, slices);
}

}  // namespace

IterationSpace SplitDims(const TensorDesc& input, const std::vector<uint32_t>& axes,
                         const TensorDesc& output, const TensorDesc* indices) {
  const auto is_axis = [&](size_t d) {
    return std::find(axes.begin(), axes.end(), d) != axes.end();
  };
  SpaceDims dims = DimsOf<3>(input, kInputTensor);
  const auto set = [&](size_t tensor, const TensorDesc& desc) {
    SetStrides(dims, tensor, desc);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (is_axis(d) && desc.sizes[d] != input.sizes[d]) dims[d].strides[tensor] = 0;
    }
  };
  set(kOutputTensor, output);
  if (indices != nullptr) set(kIndicesTensor, *indices);
  IterationSpace space;
  for (size_t d = 0; d < dims.size(); ++d) {
    (is_axis(d) ? space.reduced : space.kept).push_back(dims[d]);
  }
  return space;
}

IterationSpace MakeIterationSpace(const TensorDesc& input, const std::vector<uint32_t>& axes,
                                  const TensorDesc& output, const TensorDesc* indices,
                                  ReducedOrder order) {
  IterationSpace space = SplitDims(input, axes, output, indices);
  space.order = order;
  SortByReach(space.kept);
  if (order == ReducedOrder::kAny) SortByReach(space.reduced);
  MergeDims(space.kept);
  MergeDims(space.reduced);
  return space;
}

std::vector<IterationSpace> SliceKept(const IterationSpace& space, const SliceLimits& limits) {
  std::vector<IterationSpace> slices;
  AppendKept(space, limits, slices);
  return slices;
}

std::vector<IterationSpace> SliceReduced(const IterationSpace& space, const SliceLimits& limits) {
  std::vector<IterationSpace> slices;
  AppendReduced(space, limits, slices);
  return slices;
}

uint64_t AlignmentOf(const IterationSpace& space, size_t tensor, const SpaceDim* skip,
                     uint64_t vector) {
  uint64_t alignment = std::gcd(space.bases[tensor], vector);
  for (const auto* dims : {&space.kept, &space.reduced}) {
    for (const SpaceDim& dim : *dims) {
      if (&dim != skip) alignment = std::gcd(alignment, dim.strides[tensor]);
    }
  }
  return alignment;
}

}  // namespace opmill
