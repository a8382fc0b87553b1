// Selection: of rows, or of elements that are gathered first, chunk by chunk and list by list.
#include <algorithm>
#include <bit>

#include "kernels/operators/reduction/reduction_walk.h"
#include "kernels/operators/top_k/top_k_slice.h"

namespace opmill::top_k {
namespace {

// The most candidates that a cut leaves of those that a group sorts; a sort of so few costs no more
// than to look at another digit.
constexpr uint64_t kFewCandidates = 256;

// Leaders for each wanted item. Then 15 % more items than wanted are at or above the cut, if they
// lie in no order.
constexpr uint64_t kLeadersPerItem = 4;
constexpr uint64_t kFewestLeaders = 64;
constexpr uint64_t kMostLeaders = 128;  // to sort more takes longer than a histogram

// Of the same width, for kernels that only move elements.
DataType WordType(DataType type) {
  static constexpr DataType kTypes[] = {DataType::kUint8, DataType::kUint16, DataType::kUint32,
                                        DataType::kUint64};
  return kTypes[std::bit_width(ElementBytes(type)) - 1];
}

}  // namespace

std::vector<IterationSpace> Slice::Pieces() const {
  if (!choice_.gathers) return {space_};
  SliceLimits limits = {.input_elements = kNoLimit,
                        .output_elements = kNoLimit,
                        .reduced_elements = choice_.piece_length};
  return SliceReduced(space_, limits);
}

Slice::Elements Slice::ElementsOf(const IterationSpace& piece) const {
  if (!choice_.gathers) return {.space = piece};
  Elements rows = {.role = BufferRole::Scratch(), .offset_bytes = gathered_at_, .space = piece};
  rows.space.input_base = 0;
  uint64_t stride = choice_.row_stride;
  for (auto dim = rows.space.kept.rbegin(); dim != rows.space.kept.rend(); ++dim) {
    dim->input_stride = stride;
    stride *= dim->size;
  }
  for (SpaceDim& dim : rows.space.reduced) dim.input_stride = 1;
  return rows;
}

void Slice::Gather(const IterationSpace& piece) {
  if (!choice_.gathers) return;
  SliceLimits limits = LimitsFor(type_, type_, builder_.options());
  limits.output_elements = kNoLimit;
  limits.reduced_elements = builder_.options().max_view_elements - kVectorBytes;
  const uint32_t kernel = builder_.Kernel({"top_k_gather",
                                           "GatherRows",
                                           {{"DATA_TYPE", static_cast<uint32_t>(WordType(type_))},
                                            {"THREADS", Narrow(MostThreads(builder_.options()))}}});
  const uint64_t rows = std::min(std::bit_ceil(sequences_), uint64_t{TOP_K_TILE_ROWS});
  for (const IterationSpace& part : SliceReduced(piece, limits)) {
    const uint64_t length = part.index_count();
    const PlacedView from =
        ReadElements(type_, part.input_base, InputSpan(part.kept) + InputSpan(part.reduced));
    PlacedView to = WriteElements(BufferRole::Scratch(), type_, part.index_base - piece.index_base,
                                  (sequences_ - 1) * choice_.row_stride + length - 1);
    to.view.offset_bytes += gathered_at_;
    Dispatch dispatch;
    dispatch.kernel = kernel;
    dispatch.reads[0] = from.view;
    dispatch.writes[0] = to.view;
    TopKGatherConstants constants = {};
    SetDims(part.kept, constants.kept, constants.kept_rank);
    constants.sequences = Narrow(sequences_);
    constants.input_base = from.base;
    constants.element_stride = Narrow(Along(part).input_stride);
    constants.length = Narrow(length);
    constants.row_bits = Narrow(std::bit_width(rows) - 1);
    constants.row_tiles = Narrow(CeilDiv(length, TOP_K_TILE / rows));
    constants.row_base = to.base;
    constants.row_stride = Narrow(choice_.row_stride);
    const uint64_t tiles = CeilDiv(sequences_, rows) * constants.row_tiles;
    constants.groups.unit_count = Narrow(tiles);
    dispatch.constants = constants;
    SetGroups(dispatch, tiles);
    builder_.Add(std::move(dispatch));
  }
  builder_.NextPass();
}

void Slice::Select() {
  const std::vector<IterationSpace> pieces = Pieces();
  if (choice_.gathers) {
    const uint64_t bytes = sequences_ * choice_.row_stride * ElementBytes(type_);
    gathered_at_ = builder_.ReserveRecords(bytes / kVectorBytes);
  }
  std::vector<std::vector<Part>> parts;  // of each piece
  uint64_t records = 0;
  for (const IterationSpace& piece : pieces) {
    parts.push_back(ElementParts(ElementsOf(piece)));
    records += SelectedRecords(parts.back(), choice_.chunk_length);
  }
  if (parts.size() == 1 && parts[0].size() == 1 && length_ <= choice_.chunk_length) {
    Gather(pieces[0]);
    return SelectResults(parts[0][0], false);
  }
  List list = NewList(records);
  uint64_t first_record = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    Gather(pieces[i]);
    SelectInto(list, first_record, parts[i], false, choice_.chunk_length);
    first_record += SelectedRecords(parts[i], choice_.chunk_length);
    builder_.NextPass();
  }
  while (list.length > choice_.record_chunk) {
    const std::vector<Part> of_list = ListParts(list);
    const List shorter = NewList(SelectedRecords(of_list, choice_.record_chunk));
    SelectInto(shorter, 0, of_list, true, choice_.record_chunk);
    builder_.NextPass();
    list = shorter;
  }
  SelectResults(ListParts(list)[0], true);
}

std::pair<uint64_t, uint64_t> Slice::Chunks(uint64_t length, uint64_t most) {
  const uint64_t chunk = RoundUp(EvenPart(length, most), kVectorBytes);
  return {CeilDiv(length, chunk), chunk};
}

uint64_t Slice::SelectedRecords(const std::vector<Part>& parts, uint64_t chunk_length) const {
  uint64_t records = 0;
  for (const Part& part : parts) {
    const auto [chunks, chunk] = Chunks(part.items.length, chunk_length);
    records += (chunks - 1) * k_ + std::min(k_, part.items.length - (chunks - 1) * chunk);
  }
  return records;
}

KernelPermutation Slice::SelectKernel(bool of_records, ShaderMacro result) const {
  KernelPermutation kernel = Kernel("top_k_select", "SelectBest");
  kernel.macros.push_back(SourceMacro(of_records));
  kernel.macros.push_back(std::move(result));
  kernel.macros.push_back({"DIGIT_BITS", Narrow(choice_.digit_bits)});
  return kernel;
}

TopKSelectConstants Slice::SelectConstants(const Part& part, uint64_t chunk_length,
                                           bool to_records) const {
  const auto [chunks, chunk] = Chunks(part.items.length, chunk_length);
  TopKSelectConstants constants = {};
  SetDims(part.space.kept, constants.kept, constants.kept_rank);
  constants.groups.unit_count = Narrow(sequences_ * chunks);
  constants.items = part.items;
  constants.ranks = {.first = 0, .count = 0, .k = Narrow(k_), .unused = 0};
  constants.chunks = Narrow(chunks);
  constants.chunk_length = Narrow(chunk);
  const uint64_t leaders =
      std::min(std::clamp(std::bit_ceil(kLeadersPerItem * k_), kFewestLeaders, kMostLeaders),
               choice_.threads);
  const bool has_leaders = kLeadersPerItem * k_ <= leaders;
  constants.leader_bits = has_leaders ? Narrow(std::bit_width(leaders) - 1) : 0;
  const bool sorts_once = !has_leaders && to_records;
  const uint64_t most = std::max(std::bit_ceil(k_), kFewCandidates);
  constants.most = Narrow(sorts_once ? k_ : most);
  return constants;
}

void Slice::SelectInto(const List& to, uint64_t first_record, const std::vector<Part>& parts,
                       bool of_records, uint64_t chunk_length) {
  for (const Part& part : parts) {
    Dispatch dispatch;
    dispatch.kernel =
        builder_.Kernel(SelectKernel(of_records, {"RESULT", uint32_t{RESULT_RECORDS}}));
    dispatch.reads[0] = part.view;
    dispatch.writes[0] = ListView(to, 0, sequences_ * to.length);
    TopKSelectConstants constants = SelectConstants(part, chunk_length, true);
    constants.first_record = Narrow(first_record);
    constants.record_stride = Narrow(to.length);
    first_record += SelectedRecords({part}, chunk_length);
    dispatch.constants = constants;
    SetGroups(dispatch, constants.groups.unit_count);
    builder_.Add(std::move(dispatch));
  }
}

void Slice::SelectResults(const Part& part, bool of_records) {
  TopKSelectConstants constants = SelectConstants(part, part.items.length, false);
  for (const IterationSpace& ranks : RankParts()) {
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel(SelectKernel(of_records, ResultMacro()));
    dispatch.reads[0] = part.view;
    constants.outputs = WriteRanks(dispatch, ranks);
    constants.ranks.first = Narrow(ranks.index_base);
    constants.ranks.count = Narrow(ranks.index_count());
    dispatch.constants = constants;
    SetGroups(dispatch, sequences_);
    builder_.Add(std::move(dispatch));
  }
}

}  // namespace opmill::top_k
