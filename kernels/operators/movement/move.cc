#include "kernels/operators/movement/move.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/descriptor/tensor.h"

namespace opmill {
namespace {

uint64_t Clamped(int64_t position, uint64_t size) {
  return static_cast<uint64_t>(std::clamp<int64_t>(position, 0, static_cast<int64_t>(size) - 1));
}

// The position that an index names; nullopt if it is out of range.
std::optional<uint64_t> PositionOfIndex(DataType type, uint64_t bits, uint64_t size) {
  if (bits < size) return bits;
  const uint64_t from_end = bits + size;
  if (IsSigned(type) && static_cast<int64_t>(bits) < 0 && from_end < size) return from_end;
  return std::nullopt;
}

// Sign-extended.
uint64_t IndexAt(DataType type, const std::byte* indices, uint64_t at) {
  if (ElementBytes(type) == 8) {
    uint64_t bits = 0;
    std::memcpy(&bits, indices + at * sizeof(bits), sizeof(bits));
    return bits;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, indices + at * sizeof(bits), sizeof(bits));
  return IsSigned(type) ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)}) : bits;
}

}  // namespace

std::optional<uint64_t> PositionOf(const MoveDim& dim, uint64_t step) {
  const int64_t started = dim.start + static_cast<int64_t>(step);
  const auto position = static_cast<uint64_t>(started);
  switch (dim.rule) {
    case MoveRule::kConstant:
      if (started < 0 || position >= dim.input_size) return std::nullopt;
      return position;
    case MoveRule::kEdge:
      return Clamped(started, dim.input_size);
    case MoveRule::kMirror: {
      const uint64_t place = position % dim.period;
      // The mirror image of position 0 is the last one, of the last position position 0.
      const bool is_back = position / dim.period % 2 == 1;
      return is_back ? dim.input_size - 1 - place : place;
    }
    case MoveRule::kWrap:
      return position % dim.input_size;
    case MoveRule::kNearest: {
      const uint64_t at = static_cast<uint64_t>(dim.origin) + position * dim.scale;
      return Clamped(static_cast<int64_t>(at) >> 32, dim.input_size);
    }
    default:
      return step;
  }
}

Positions PositionsOf(const MoveDim& dim) {
  const uint64_t last = dim.size - 1;
  const int64_t first_start = dim.start;
  const int64_t last_start = dim.start + static_cast<int64_t>(last);
  switch (dim.rule) {
    case MoveRule::kConstant:
    case MoveRule::kEdge:
      return {Clamped(first_start, dim.input_size), Clamped(last_start, dim.input_size)};
    case MoveRule::kMirror:
    case MoveRule::kWrap: {
      const auto period =
          static_cast<int64_t>(dim.rule == MoveRule::kWrap ? dim.input_size : dim.period);
      if (first_start / period != last_start / period) return {0, dim.input_size - 1};
      const uint64_t a = *PositionOf(dim, 0);
      const uint64_t b = *PositionOf(dim, last);
      return {std::min(a, b), std::max(a, b)};
    }
    case MoveRule::kReversed:
      return {0, 0};
    default:
      return {*PositionOf(dim, 0), *PositionOf(dim, last)};
  }
}

void MovePlace::Add(const MoveDim& dim, uint64_t step) {
  for (const size_t t : {kOutputTensor, kIndicesTensor}) offsets[t] += step * dim.strides[t];
  if (dim.rule == MoveRule::kReversed) {
    along = static_cast<uint64_t>(dim.start) + step;
    return;
  }
  if (dim.rule == MoveRule::kRow) diagonal -= dim.start + static_cast<int64_t>(step);
  if (dim.rule == MoveRule::kColumn) diagonal += dim.start + static_cast<int64_t>(step);
  const std::optional<uint64_t> position = PositionOf(dim, step);
  is_inside = is_inside && position.has_value();
  offsets[kInputTensor] += position.value_or(0) * dim.strides[kInputTensor];
}

bool MovePlace::Follow(const Move& move, DataType index_type, const std::byte* indices) {
  if (move.index == MoveIndex::kNone) return true;
  if (move.index == MoveIndex::kLength) {
    const IndexedDim& dim = move.indexed[0];
    const uint64_t length =
        std::min(IndexAt(index_type, indices, offsets[kIndicesTensor]), dim.size);
    offsets[kInputTensor] += (along < length ? length - 1 - along : along) * dim.stride;
    return true;
  }
  const bool reads = move.index == MoveIndex::kSource;
  for (size_t i = 0; i < move.indexed.size(); ++i) {
    const IndexedDim& dim = move.indexed[i];
    const std::optional<uint64_t> position = PositionOfIndex(
        index_type, IndexAt(index_type, indices, offsets[kIndicesTensor] + i * move.index_step),
        dim.size);
    is_inside = is_inside && position.has_value();
    offsets[reads ? kInputTensor : kOutputTensor] += position.value_or(0) * dim.stride;
  }
  return reads || is_inside;
}

bool MovePlace::IsConstant(const Move& move) const {
  const bool is_band = move.fill_end >= move.fill_begin;
  return !is_inside || is_band != ((diagonal >= move.fill_begin) != (diagonal < move.fill_end));
}

void Simplify(Move& move) {
  SortByStride(move.dims, kOutputTensor);
  MergeDims(move.dims, [](const MoveDim& dim) { return dim.rule == MoveRule::kPlain; });
  if (move.dims.empty()) move.dims.push_back({.strides = {1, 1, 0}});
}

}  // namespace opmill
