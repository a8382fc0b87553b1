#include "kernels/program/placement.h"

#include <algorithm>

#include "kernels/base/rounding.h"

namespace opmill {
namespace {

// Memory that is needed from the node `first` to the node `last`.
struct Block {
  uint64_t size_bytes = 0;
  size_t first = 0;
  size_t last = 0;
  uint64_t* offset_bytes = nullptr;  // the result

  uint64_t end() const { return *offset_bytes + size_bytes; }
  bool IsNeededWith(const Block& other) const { return first <= other.last && other.first <= last; }
};

// First fit, the largest first. Returns the size of the arena.
uint64_t PlaceBlocks(std::vector<Block> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.size_bytes > b.size_bytes; });
  uint64_t arena_bytes = 0;
  std::vector<Block> placed;  // by offset
  for (const Block& block : blocks) {
    uint64_t offset = 0;
    for (const Block& other : placed) {
      if (!block.IsNeededWith(other)) continue;
      if (offset + block.size_bytes <= *other.offset_bytes) break;
      offset = std::max(offset, RoundUp(other.end(), kPlacementAlignment));
    }
    *block.offset_bytes = offset;
    arena_bytes = std::max(arena_bytes, block.end());
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [](uint64_t at, const Block& other) { return at < *other.offset_bytes; }),
        block);
  }
  return arena_bytes;
}

uint64_t LargestSum(const std::vector<Block>& blocks, size_t nodes) {
  std::vector<uint64_t> added(nodes + 1, 0);
  std::vector<uint64_t> removed(nodes + 1, 0);
  for (const Block& block : blocks) {
    added[block.first] += block.size_bytes;
    removed[block.last + 1] += block.size_bytes;
  }
  uint64_t sum = 0;
  uint64_t largest = 0;
  for (size_t n = 0; n < nodes; ++n) {
    sum += added[n] - removed[n];
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

ProgramPlaces Place(const Program& program, absl::Span<const uint64_t> scratch_bytes,
                    absl::Span<const ValuePart> parts) {
  ProgramPlaces places;
  places.values.resize(program.values.size());
  places.scratch_offsets.resize(program.nodes.size());
  std::vector<Block> intermediates(program.values.size());
  uint32_t counts[kValueKinds] = {};
  for (size_t i = 0; i < program.values.size(); ++i) {
    const ProgramValue& value = program.values[i];
    places.values[i].kind = value.kind;
    if (value.kind != ValueKind::kIntermediate) {
      places.values[i].index = counts[static_cast<size_t>(value.kind)]++;
    }
  }
  std::vector<Block> blocks;
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    for (const uint32_t value : program.nodes[n].outputs) {
      if (program.values[value].kind != ValueKind::kIntermediate) continue;
      intermediates[value] = {
          .size_bytes = RoundUp(RequiredBytes(program.values[value].tensor), kPlacementAlignment),
          .first = n,
          .last = n,
          .offset_bytes = &places.values[value].offset_bytes};
    }
    for (const ProgramView& view : program.nodes[n].inputs) intermediates[view.value].last = n;
    if (scratch_bytes[n] > 0) {
      blocks.push_back({scratch_bytes[n], n, n, &places.scratch_offsets[n]});
    }
  }
  for (const ValuePart& part : parts) {
    Block& block = intermediates[part.value];
    Block& whole = intermediates[part.whole];
    whole.first = std::min(whole.first, block.first);
    whole.last = std::max(whole.last, block.last);
    block.size_bytes = 0;
  }
  for (const Block& block : intermediates) {
    if (block.size_bytes > 0) blocks.push_back(block);
  }
  places.live_bytes = LargestSum(blocks, program.nodes.size());
  places.arena_bytes = PlaceBlocks(std::move(blocks));
  for (size_t i = parts.size(); i-- > 0;) {
    places.values[parts[i].value].offset_bytes =
        places.values[parts[i].whole].offset_bytes + parts[i].offset_bytes;
  }
  return places;
}

ValuePlace PlaceOf(const ProgramView& view, const Program& program, const ProgramPlaces& places) {
  ValuePlace place = places.values[view.value];
  place.offset_bytes +=
      view.first_element * ElementBytes(program.values[view.value].tensor.data_type);
  return place;
}

}  // namespace opmill
