#include <algorithm>
#include <utility>

#include "kernels/base/errors.h"
#include "kernels/dims/iteration_space.h"
#include "kernels/operators/movement/move_slice.h"

namespace opmill {
namespace {

// How far the steps of a dimension move in a tensor: from its first element down, and up.
struct Reach {
  uint64_t down = 0;
  uint64_t up = 0;
};

Reach ReachOf(const MoveDim& dim, MoveTensor tensor) {
  if (tensor == MoveTensor::kOutput) return {.up = (dim.size - 1) * dim.output};
  if (tensor == MoveTensor::kIndices) return {.up = (dim.size - 1) * dim.index};
  if (dim.input < 0) return {.down = (dim.size - 1) * (0 - static_cast<uint64_t>(dim.input))};
  return {.up = PositionsOf(dim).last * static_cast<uint64_t>(dim.input)};
}

uint64_t FirstOf(const MoveDim& dim, MoveTensor tensor) {
  if (tensor != MoveTensor::kInput || dim.input < 0) return 0;
  return PositionsOf(dim).first * static_cast<uint64_t>(dim.input);
}

bool IsIndexed(const Move& move, MoveTensor tensor) {
  if (move.index == MoveIndex::kDestination) return tensor == MoveTensor::kOutput;
  return move.index != MoveIndex::kNone && tensor == MoveTensor::kInput;
}

uint64_t BaseOf(const Move& move, MoveTensor tensor) {
  return tensor == MoveTensor::kInput    ? move.input_base
         : tensor == MoveTensor::kOutput ? move.output_base
                                         : move.index_base;
}

// The dimension that reaches farthest in a tensor.
size_t FarthestDim(const Move& move, MoveTensor tensor) {
  const auto span = [&](const MoveDim& dim) {
    const Reach reach = ReachOf(dim, tensor);
    return dim.size == 1 ? 0 : reach.down + reach.up - FirstOf(dim, tensor);
  };
  const auto farthest =
      std::max_element(move.dims.begin(), move.dims.end(),
                       [&](const MoveDim& a, const MoveDim& b) { return span(a) < span(b); });
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
  upper.output_base += half * dim.output;
  upper.index_base += half * dim.index;
  if (dim.rule == MoveRule::kPlain || !HasPositions(dim)) {
    upper.input_base += half * static_cast<uint64_t>(dim.input);
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

absl::Status Append(const MoveSlice& slice, const MoveLimits& limits,
                    std::vector<MoveSlice>& slices);

absl::Status AppendHalves(const std::pair<MoveSlice, MoveSlice>& halves, const MoveLimits& limits,
                          std::vector<MoveSlice>& slices) {
  RETURN_IF_ERROR(Append(halves.first, limits, slices));
  return Append(halves.second, limits, slices);
}

absl::Status Append(const MoveSlice& slice, const MoveLimits& limits,
                    std::vector<MoveSlice>& slices) {
  if (slices.size() >= kMaxSlices) return absl::OkStatus();
  const Move& move = slice.move;
  const std::pair<MoveTensor, uint64_t> tensors[] = {{MoveTensor::kOutput, limits.output},
                                                     {MoveTensor::kInput, limits.input},
                                                     {MoveTensor::kIndices, limits.indices}};
  for (const auto& [tensor, limit] : tensors) {
    if (tensor == MoveTensor::kIndices && move.index == MoveIndex::kNone) continue;
    if (ExtentOf(slice, tensor).span() < limit) continue;
    const size_t d = FarthestDim(move, tensor);
    const uint64_t of_dim = ReachOf(move.dims[d], tensor).down + ReachOf(move.dims[d], tensor).up -
                            FirstOf(move.dims[d], tensor);
    if (IsIndexed(move, tensor)) {
      size_t widest = 0;
      const auto span = [&](size_t i) {
        return (slice.ranges[i].count - 1) * move.indexed[i].stride;
      };
      for (size_t i = 1; i < slice.ranges.size(); ++i) {
        if (span(i) > span(widest)) widest = i;
      }
      if (slice.ranges[widest].count > 1 && (move.dims[d].size == 1 || span(widest) >= of_dim)) {
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
  if (StepsOf(move) > limits.steps) return AppendHalves(HalvesOfDim(slice, 0), limits, slices);
  slices.push_back(slice);
  return absl::OkStatus();
}

}  // namespace

MoveExtent ExtentOf(const MoveSlice& slice, MoveTensor tensor) {
  const Move& move = slice.move;
  const uint64_t base = BaseOf(move, tensor);
  MoveExtent extent = {base, base};
  for (const MoveDim& dim : move.dims) {
    const Reach reach = ReachOf(dim, tensor);
    extent.first += FirstOf(dim, tensor) - reach.down;
    extent.last += reach.up;
  }
  if (tensor == MoveTensor::kIndices && !move.indexed.empty()) {
    extent.last += (move.indexed.size() - 1) * move.index_step;
  }
  for (size_t i = 0; IsIndexed(move, tensor) && i < slice.ranges.size(); ++i) {
    const MoveRange& range = slice.ranges[i];
    extent.first += range.first * move.indexed[i].stride;
    extent.last += (range.first + range.count - 1) * move.indexed[i].stride;
  }
  return extent;
}

uint64_t StepsOf(const Move& move) {
  uint64_t steps = 1;
  for (const MoveDim& dim : move.dims) steps *= dim.size;
  return steps;
}

absl::StatusOr<std::vector<MoveSlice>> SliceMove(const Move& move, const MoveLimits& limits) {
  MoveSlice whole = {.move = move};
  for (const IndexedDim& dim : move.indexed) whole.ranges.push_back({.count = dim.size});
  std::vector<MoveSlice> slices;
  RETURN_IF_ERROR(Append(whole, limits, slices));
  return slices;
}

uint32_t Widen(Move& move, uint32_t element_bytes) {
  MoveDim& row = move.dims.back();
  const bool is_contiguous =
      row.rule == MoveRule::kPlain && row.output == 1 && row.input == 1 && row.index == 0;
  if (!is_contiguous) return 1;
  // What must be a multiple of the elements that become one.
  uint64_t steps = row.size | move.input_base | move.output_base;
  for (size_t d = 0; d + 1 < move.dims.size(); ++d) {
    steps |= move.dims[d].output | static_cast<uint64_t>(move.dims[d].input);
  }
  for (const IndexedDim& dim : move.indexed) steps |= dim.stride;
  uint32_t factor = 16 / element_bytes;
  while (steps % factor != 0) factor /= 2;
  row.size /= factor;
  move.input_base /= factor;
  move.output_base /= factor;
  for (size_t d = 0; d + 1 < move.dims.size(); ++d) {
    move.dims[d].output /= factor;
    move.dims[d].input /= static_cast<int64_t>(factor);
  }
  for (IndexedDim& dim : move.indexed) dim.stride /= factor;
  return factor;
}

}  // namespace opmill
