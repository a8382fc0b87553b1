#include <algorithm>
#include <utility>

#include "kernels/base/errors.h"
#include "kernels/dims/iteration_space.h"
#include "kernels/operators/movement/move_slice.h"

namespace opmill {
namespace {

// From the first element of the dimension.
MoveExtent ExtentOf(const MoveDim& dim, size_t tensor) {
  const Positions positions =
      tensor == kInputTensor ? PositionsOf(dim) : Positions{.last = dim.size - 1};
  const uint64_t stride = dim.strides[tensor];
  MoveExtent extent = {positions.first * stride, positions.last * stride};
  if (static_cast<int64_t>(stride) < 0) std::swap(extent.first, extent.last);
  return extent;
}

bool IsIndexed(const Move& move, size_t tensor) {
  if (move.index == MoveIndex::kDestination) return tensor == kOutputTensor;
  return move.index != MoveIndex::kNone && tensor == kInputTensor;
}

// The dimension that reaches farthest in a tensor.
size_t FarthestDim(const Move& move, size_t tensor) {
  const auto farthest = std::max_element(
      move.dims.begin(), move.dims.end(), [tensor](const MoveDim& a, const MoveDim& b) {
        return ExtentOf(a, tensor).span() < ExtentOf(b, tensor).span();
      });
  return static_cast<size_t>(farthest - move.dims.begin());
}

std::pair<MoveSlice, MoveSlice> HalvesOfDim(const MoveSlice& slice, size_t d) {
  std::pair<MoveSlice, MoveSlice> halves(slice, slice);
  const MoveDim& dim = slice.move.dims[d];
  const uint64_t half = CeilDiv(dim.size, uint64_t{2});
  halves.first.move.dims[d].size = half;
  Move& upper = halves.second.move;
  upper.dims[d].size = dim.size - half;
  upper.dims[d].start += static_cast<int64_t>(half);
  Advance(upper.bases, dim, half);
  // Other positions depend on `start`.
  if (dim.rule != MoveRule::kPlain && HasPositions(dim)) {
    upper.bases[kInputTensor] = slice.move.bases[kInputTensor];
  }
  return halves;
}

std::pair<MoveSlice, MoveSlice> HalvesOfRange(const MoveSlice& slice, size_t i) {
  std::pair<MoveSlice, MoveSlice> halves(slice, slice);
  const uint64_t half = CeilDiv(slice.ranges[i].count, uint64_t{2});
  halves.first.ranges[i].count = half;
  halves.second.ranges[i].first += half;
  halves.second.ranges[i].count -= half;
  return halves;
}

absl::Status Append(const MoveSlice& slice, const SliceLimits& limits,
                    std::vector<MoveSlice>& slices);

absl::Status AppendHalves(const std::pair<MoveSlice, MoveSlice>& halves, const SliceLimits& limits,
                          std::vector<MoveSlice>& slices) {
  RETURN_IF_ERROR(Append(halves.first, limits, slices));
  return Append(halves.second, limits, slices);
}

absl::Status Append(const MoveSlice& slice, const SliceLimits& limits,
                    std::vector<MoveSlice>& slices) {
  if (slices.size() >= kMaxSlices) return absl::OkStatus();
  const Move& move = slice.move;
  for (const size_t tensor : {kOutputTensor, kInputTensor, kIndicesTensor}) {
    if (tensor == kIndicesTensor && move.index == MoveIndex::kNone) continue;
    if (ExtentOf(slice, tensor).span() < limits.elements[tensor]) continue;
    const size_t d = FarthestDim(move, tensor);
    if (IsIndexed(move, tensor)) {
      size_t widest = 0;
      const auto span = [&](size_t i) {
        return (slice.ranges[i].count - 1) * move.indexed[i].stride;
      };
      for (size_t i = 1; i < slice.ranges.size(); ++i) {
        if (span(i) > span(widest)) widest = i;
      }
      if (slice.ranges[widest].count > 1 && span(widest) >= ExtentOf(move.dims[d], tensor).span()) {
        return AppendHalves(HalvesOfRange(slice, widest), limits, slices);
      }
    }
    if (move.dims[d].size == 1) {
      return absl::ResourceExhaustedError(
          "The strides of the indices put the coordinates of an index farther apart than a device "
          "can read at once.");
    }
    return AppendHalves(HalvesOfDim(slice, d), limits, slices);
  }
  if (CountOf(move.dims) > limits.results) {
    return AppendHalves(HalvesOfDim(slice, 0), limits, slices);
  }
  slices.push_back(slice);
  return absl::OkStatus();
}

}  // namespace

MoveExtent ExtentOf(const MoveSlice& slice, size_t tensor) {
  const Move& move = slice.move;
  MoveExtent extent = {move.bases[tensor], move.bases[tensor]};
  for (const MoveDim& dim : move.dims) {
    const MoveExtent of_dim = ExtentOf(dim, tensor);
    extent.first += of_dim.first;
    extent.last += of_dim.last;
  }
  if (tensor == kIndicesTensor && !move.indexed.empty()) {
    extent.last += (move.indexed.size() - 1) * move.index_step;
  }
  for (size_t i = 0; IsIndexed(move, tensor) && i < slice.ranges.size(); ++i) {
    const MoveRange& range = slice.ranges[i];
    extent.first += range.first * move.indexed[i].stride;
    extent.last += (range.first + range.count - 1) * move.indexed[i].stride;
  }
  return extent;
}

absl::StatusOr<std::vector<MoveSlice>> SliceMove(const Move& move, const SliceLimits& limits) {
  MoveSlice whole = {.move = move};
  for (const IndexedDim& dim : move.indexed) whole.ranges.push_back({.count = dim.size});
  std::vector<MoveSlice> slices;
  RETURN_IF_ERROR(Append(whole, limits, slices));
  return slices;
}

uint32_t Widen(Move& move, uint32_t element_bytes) {
  MoveDim& row = move.dims.back();
  if (row.rule != MoveRule::kPlain || row.strides != Offsets<3>{1, 1, 0}) return 1;
  constexpr size_t kTensors[] = {kInputTensor, kOutputTensor};
  // What must be a multiple of the elements that become one.
  uint64_t steps = row.size;
  for (const size_t t : kTensors) {
    steps |= move.bases[t];
    for (size_t d = 0; d + 1 < move.dims.size(); ++d) steps |= move.dims[d].strides[t];
  }
  for (const IndexedDim& dim : move.indexed) steps |= dim.stride;
  uint32_t factor = 16 / element_bytes;
  while (steps % factor != 0) factor /= 2;
  row.size /= factor;
  for (const size_t t : kTensors) {
    move.bases[t] /= factor;
    for (size_t d = 0; d + 1 < move.dims.size(); ++d) {
      uint64_t& stride = move.dims[d].strides[t];
      stride = static_cast<uint64_t>(static_cast<int64_t>(stride) / int64_t{factor});
    }
  }
  for (IndexedDim& dim : move.indexed) dim.stride /= factor;
  return factor;
}

}  // namespace opmill
