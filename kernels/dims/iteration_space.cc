#include "kernels/dims/iteration_space.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "kernels/dims/collapse.h"

namespace opmill {
namespace {

uint64_t Product(const std::vector<SpaceDim>& dims) {
  uint64_t product = 1;
  for (const SpaceDim& dim : dims) product *= dim.size;
  return product;
}

uint64_t Span(const std::vector<SpaceDim>& dims, uint64_t SpaceDim::*stride) {
  uint64_t span = 0;
  for (const SpaceDim& dim : dims) span += (dim.size - 1) * dim.*stride;
  return span;
}

bool WalksAsOne(const SpaceDim& outer, const SpaceDim& inner) {
  return outer.input_stride == inner.size * inner.input_stride &&
         outer.output_stride == inner.size * inner.output_stride &&
         outer.index_stride == inner.size * inner.index_stride;
}

// Largest strides first; broadcast dimensions (stride 0) outermost, where they affect locality
// least.
void SortByReach(std::vector<SpaceDim>& dims) {
  std::stable_sort(dims.begin(), dims.end(), [](const SpaceDim& a, const SpaceDim& b) {
    const auto key = [](const SpaceDim& d) {
      return std::make_tuple(d.input_stride == 0, d.input_stride, d.output_stride);
    };
    return key(a) > key(b);
  });
}

size_t LargestBy(const std::vector<SpaceDim>& dims, uint64_t SpaceDim::*stride) {
  size_t best = 0;
  for (size_t d = 1; d < dims.size(); ++d) {
    if ((dims[d].size - 1) * dims[d].*stride > (dims[best].size - 1) * dims[best].*stride) best = d;
  }
  return best;
}

// Splits the space in two along one of its dimensions; the first half is the larger one.
std::array<IterationSpace, 2> Halves(const IterationSpace& space,
                                     std::vector<SpaceDim> IterationSpace::*dims, size_t d) {
  std::array<IterationSpace, 2> halves = {space, space};
  auto& [lower, upper] = halves;
  const SpaceDim& cut = (space.*dims)[d];
  const uint64_t half = (cut.size + 1) / 2;
  (lower.*dims)[d].size = half;
  (upper.*dims)[d].size = cut.size - half;
  upper.input_base += half * cut.input_stride;
  upper.output_base += half * cut.output_stride;
  upper.output2_base += half * cut.index_stride;
  for (IterationSpace& part : halves) part.*dims = Collapse(part.*dims, WalksAsOne);
  return halves;
}

void AppendKept(const IterationSpace& space, const SliceLimits& limits,
                std::vector<IterationSpace>& slices) {
  if (slices.size() >= kMaxSlices) return;
  const std::vector<SpaceDim>& kept = space.kept;
  const std::vector<SpaceDim>& reduced = space.reduced;
  // The reduction may be sliced too, so at most half of a limit is used.
  const auto too_far = [&](uint64_t SpaceDim::*stride, uint64_t limit) {
    return Span(kept, stride) + std::min(Span(reduced, stride), limit / 2) >= limit;
  };
  size_t d = 0;
  if (kept.empty()) {
    slices.push_back(space);
    return;
  } else if (too_far(&SpaceDim::input_stride, limits.input_elements)) {
    d = LargestBy(kept, &SpaceDim::input_stride);
  } else if (too_far(&SpaceDim::output_stride, limits.output_elements)) {
    d = LargestBy(kept, &SpaceDim::output_stride);
  } else if (too_far(&SpaceDim::index_stride, limits.index_elements)) {
    d = LargestBy(kept, &SpaceDim::index_stride);
  } else if (Product(kept) > limits.results) {
    d = 0;
  } else {
    slices.push_back(space);
    return;
  }
  for (const IterationSpace& part : Halves(space, &IterationSpace::kept, d)) {
    AppendKept(part, limits, slices);
  }
}

void AppendReduced(const IterationSpace& space, const SliceLimits& limits,
                   std::vector<IterationSpace>& slices) {
  if (slices.size() >= kMaxSlices) return;
  const bool reachable = InputSpan(space.kept) + InputSpan(space.reduced) < limits.input_elements;
  const bool fits = reachable &&
                    OutputSpan(space.kept) + OutputSpan(space.reduced) < limits.output_elements &&
                    IndexSpan(space.kept) + IndexSpan(space.reduced) < limits.index_elements &&
                    space.index_count() <= limits.reduced_elements;
  if (fits || space.reduced.empty()) {
    slices.push_back(space);
    return;
  }
  // Only cuts along the outermost dimension give each part a contiguous range of positions. If
  // positions are not needed, the dimension with the largest span needs the fewest cuts.
  const bool anywhere = space.order == ReducedOrder::kAny && !reachable;
  const size_t d = anywhere ? LargestBy(space.reduced, &SpaceDim::input_stride) : 0;
  std::array<IterationSpace, 2> halves = Halves(space, &IterationSpace::reduced, d);
  if (space.order == ReducedOrder::kRowMajor) halves[1].index_base += halves[0].index_count();
  for (const IterationSpace& part : halves) AppendReduced(part, limits, slices);
}

}  // namespace

uint64_t IterationSpace::results() const { return Product(kept); }
uint64_t IterationSpace::index_count() const { return Product(reduced); }

uint64_t InputSpan(const std::vector<SpaceDim>& dims) {
  return Span(dims, &SpaceDim::input_stride);
}
uint64_t OutputSpan(const std::vector<SpaceDim>& dims) {
  return Span(dims, &SpaceDim::output_stride);
}
uint64_t IndexSpan(const std::vector<SpaceDim>& dims) {
  return Span(dims, &SpaceDim::index_stride);
}

IterationSpace MakeIterationSpace(const TensorDesc& input, const std::vector<uint32_t>& axes,
                                  const TensorDesc& output, const TensorDesc* index,
                                  ReducedOrder order) {
  const std::vector<uint32_t> input_strides = EffectiveStrides(input);
  const std::vector<uint32_t> output_strides = EffectiveStrides(output);
  const std::vector<uint32_t> index_strides =
      index != nullptr ? EffectiveStrides(*index) : std::vector<uint32_t>(input.sizes.size(), 0);
  IterationSpace space;
  space.order = order;
  for (uint32_t d = 0; d < input.sizes.size(); ++d) {
    const SpaceDim dim = {input.sizes[d], input_strides[d], output_strides[d], index_strides[d]};
    const bool is_reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    (is_reduced ? space.reduced : space.kept).push_back(dim);
  }
  // An output has stride 0 along a reduced axis if its size is 1 there, and moves along it if it is
  // as long as the input.
  for (uint32_t d = 0, r = 0; d < input.sizes.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) continue;
    if (output.sizes[d] != input.sizes[d]) space.reduced[r].output_stride = 0;
    if (index != nullptr && index->sizes[d] != input.sizes[d]) space.reduced[r].index_stride = 0;
    ++r;
  }
  SortByReach(space.kept);
  if (order == ReducedOrder::kAny) SortByReach(space.reduced);
  space.kept = Collapse(space.kept, WalksAsOne);
  space.reduced = Collapse(space.reduced, WalksAsOne);
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

namespace {

uint64_t AlignmentOf(const IterationSpace& space, uint64_t base, uint64_t SpaceDim::*stride,
                     const SpaceDim* skip, uint64_t vector) {
  uint64_t alignment = std::gcd(base, vector);
  for (const auto* dims : {&space.kept, &space.reduced}) {
    for (const SpaceDim& dim : *dims) {
      if (&dim != skip) alignment = std::gcd(alignment, dim.*stride);
    }
  }
  return alignment;
}

}  // namespace

uint64_t InputAlignment(const IterationSpace& space, const SpaceDim* skip, uint64_t vector) {
  return AlignmentOf(space, space.input_base, &SpaceDim::input_stride, skip, vector);
}

uint64_t OutputAlignment(const IterationSpace& space, const SpaceDim* skip, uint64_t vector) {
  return AlignmentOf(space, space.output_base, &SpaceDim::output_stride, skip, vector);
}

}  // namespace opmill
