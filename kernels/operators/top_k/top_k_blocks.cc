// Computes the best keys of blocks: the layout of sequences in memory, and the distribution of
// reads.
#include "kernels/operators/top_k/top_k_slice.h"

namespace opmill::top_k {
namespace {

// The most lanes that read a block of rows together.
constexpr uint64_t kMaxTeam = 8;

}  // namespace

TopKPart TopKSlice::ReadPart(Dispatch& dispatch, const IterationSpace& part) const {
  const PlacedView input =
      ReadElements(type_, part.input_base, InputSpan(part.kept) + InputSpan(part.reduced));
  dispatch.reads[0] = input.view;
  const SpaceDim along = part.reduced.empty() ? SpaceDim() : part.reduced[0];
  return {.input_base = input.base,
          .element_stride = static_cast<uint32_t>(along.input_stride),
          .first_position = static_cast<uint32_t>(part.index_base),
          .length = static_cast<uint32_t>(part.index_count())};
}

Layout TopKSlice::LayoutOf(const IterationSpace& part) const {
  if (part.reduced.empty() || part.reduced[0].input_stride == 1) return Layout::kRows;
  const uint64_t vector = VectorElements();
  // A vector of 64-bit elements holds only two columns; the strided layout reads them as well.
  if (vector == 2 || part.kept.empty() || part.kept.back().input_stride != 1 ||
      part.kept.back().size < vector || part.input_base % vector != 0 ||
      part.reduced[0].input_stride % vector != 0) {
    return Layout::kStrided;
  }
  for (size_t d = 0; d + 1 < part.kept.size(); ++d) {
    if (part.kept[d].input_stride % vector != 0) return Layout::kStrided;
  }
  return Layout::kColumns;
}

Keys TopKSlice::BlockKeys(uint64_t block) {
  Keys keys = {.layout = LayoutOf(parts_[0])};
  for (const IterationSpace& part : parts_) {
    if (LayoutOf(part) != keys.layout) keys.layout = Layout::kStrided;
  }
  // Empty blocks must come last, so rows of several parts must start at the same place in their
  // vectors.
  bool alike = true;
  for (const SpaceDim& dim : space_.kept) alike &= dim.input_stride % VectorElements() == 0;
  if (keys.layout == Layout::kRows && parts_.size() > 1 && !alike) keys.layout = Layout::kStrided;
  for (const IterationSpace& part : parts_) {
    uint64_t before = 0;
    if (keys.layout == Layout::kRows) {
      before = alike ? part.input_base % VectorElements() : VectorElements() - 1;
    }
    keys.part_lengths.push_back(CeilDiv(part.index_count() + before, block));
    keys.length += keys.part_lengths.back();
  }
  // Keys are read several at a time.
  const uint64_t padding = CeilDiv(keys.length, TOP_K_KEY_STEP) * TOP_K_KEY_STEP - keys.length;
  keys.part_lengths.back() += padding;
  keys.length += padding;
  uint64_t key_count = keys.length * sequences_;
  keys.stride = 1;
  switch (keys.layout) {
    case Layout::kRows:
      keys.stride = keys.length;
      break;
    case Layout::kColumns:
      keys.columns = space_.kept.back().size;
      keys.item_stride = CeilDiv(keys.columns, VectorElements()) * VectorElements();
      keys.stride = keys.length * keys.item_stride;
      key_count = sequences_ / keys.columns * keys.stride;
      break;
    case Layout::kStrided:
      keys.item_stride = sequences_;
      break;
  }
  const uint64_t key_bytes = ElementBytes(type_) == 8 ? 8 : 4;
  const uint64_t records = CeilDiv(key_count * key_bytes, kVectorBytes);
  keys.view = Records(builder_.ReserveRecords(records), records);
  if (keys.layout == Layout::kColumns && lane_keeps_) {
    keys.runners = Records(builder_.ReserveRecords(2 * records), 2 * records);
  }
  uint64_t base = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    AddBlockKeys(parts_[p], block, keys.part_lengths[p], base, keys);
    base += keys.part_lengths[p];
  }
  builder_.NextPass();
  return keys;
}

// The keys of the blocks of one part. Its first block is block `base` of the sequence.
void TopKSlice::AddBlockKeys(const IterationSpace& part, uint64_t block, uint64_t length,
                             uint64_t base, const Keys& keys) {
  const uint64_t threads = builder_.options().threads;
  const bool columns = keys.layout == Layout::kColumns;
  const uint64_t row_vectors = columns ? keys.item_stride / VectorElements() : 0;
  // On software devices lanes take several vectors of a row each.
  uint64_t tile = 1;
  if (columns && !builder_.options().prefers_wide_rows) {
    const uint64_t sets = std::max<uint64_t>(1, VectorElements() / 4);
    const uint64_t most = std::min(tuning::kMaxTileVectors, tuning::kMaxTileSets / sets);
    tile = EvenPart(CeilDiv(row_vectors, threads), most);
  }
  const uint64_t team =
      builder_.options().prefers_wide_rows ? std::min(kMaxTeam, block / VectorElements()) : 1;
  std::vector<ShaderMacro> macros = Macros(false);
  macros.push_back({"LAYOUT", static_cast<uint32_t>(keys.layout)});
  if (columns) {
    macros.push_back({"TILED", tile > 1 ? 1u : 0u});
    macros.push_back({"RUNNERS", lane_keeps_ ? 1u : 0u});
  }
  if (keys.layout == Layout::kRows) macros.push_back({"TEAM", static_cast<uint32_t>(team)});
  Dispatch dispatch;
  dispatch.kernel = builder_.Kernel({"top_k_blocks", "BestOfBlocks", std::move(macros)});
  dispatch.writes[0] = keys.view;
  TopKBlocksConstants constants = {};
  constants.part = ReadPart(dispatch, part);
  constants.keys = keys.constants();
  SetDims(absl::MakeConstSpan(part.kept).first(part.kept.size() - (columns ? 1 : 0)),
          constants.kept, constants.kept_rank);
  constants.sequences = static_cast<uint32_t>(sequences_);
  constants.block_length = static_cast<uint32_t>(block);
  constants.block_count = static_cast<uint32_t>(length);
  constants.first_block = static_cast<uint32_t>(base);
  uint64_t units = sequences_ * length;
  uint64_t group_units = threads;
  if (keys.layout == Layout::kRows) {
    // Groups read much, unless too few of them would be left to fill the device.
    const uint64_t turns_of_sequence = CeilDiv(length, team);
    const uint64_t turn_bytes = team * block * ElementBytes(type_) * (threads / team);
    const uint64_t filling =
        sequences_ * turns_of_sequence / (threads / team * builder_.options().parallel_groups);
    const uint64_t turns = std::clamp<uint64_t>(std::min(tuning::kGroupBytes / turn_bytes, filling),
                                                1, turns_of_sequence);
    constants.team_turns = static_cast<uint32_t>(turns);
    constants.sequence_teams = static_cast<uint32_t>(CeilDiv(turns_of_sequence, turns));
    units = sequences_ * constants.sequence_teams;
    group_units = threads / team;
  }
  if (columns) {
    dispatch.writes[1] = keys.runners;
    const uint64_t row_lanes =
        tile == 1 ? row_vectors : CeilDiv(row_vectors, threads * tile) * threads;
    constants.row_lanes = static_cast<uint32_t>(row_lanes);
    constants.row_vectors = static_cast<uint32_t>(row_vectors);
    constants.tile_vectors = static_cast<uint32_t>(tile);
    constants.tile_rows = tuning::kTileRows;
    units = sequences_ / keys.columns * length * row_lanes;
  } else {
    dispatch.writes[0] =
        InFormat(keys.view, ElementBytes(type_) == 8 ? ViewFormat::kUint32x2 : ViewFormat::kUint32);
  }
  dispatch.constants = constants;
  DealUnits(dispatch, units, 1, group_units);
  builder_.Add(std::move(dispatch));
}

}  // namespace opmill::top_k
