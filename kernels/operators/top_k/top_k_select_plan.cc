// Selection: of elements where they are, or of gathered ones, chunk by chunk and list by list.
#include <algorithm>
#include <bit>

#include "kernels/operators/top_k/top_k_planner.h"
#include "kernels/plan/fold.h"

namespace opmill::top_k {
namespace {

constexpr uint64_t kBestStep = 4;  // WalkChunks keeps a multiple of it

// Two waves of NVIDIA's GPUs, one of AMD's.
constexpr uint64_t kLeastThreads = 64;

// So many candidates are compared with each other, where there is room for `capacity`.
uint64_t Few(uint64_t capacity) { return std::min<uint64_t>(TOP_K_FEW, capacity / 2); }

// The most candidates that are collected: few, even if fewer are wanted, because to look at another
// digit of all items takes longer; or twice as many as wanted.
uint64_t Most(uint64_t k, uint64_t capacity) {
  const uint64_t few = Few(capacity);
  return 3 * k <= 2 * few ? few : std::min(capacity, std::bit_ceil(2 * k));
}

// Leaders for a floor, or 0. About k * 4 / 3 items reach a floor of one leader for each lane if k
// is at most a quarter of the lanes, and one of a leader for each vector if k is at most half of
// them; 1.7 k if k is at most 0.7 of them.
uint64_t Leaders(uint64_t k, uint64_t most, uint64_t threads, uint64_t vectors, bool is_wide) {
  if (3 * k > 2 * most) return 0;
  if (4 * k <= threads) return threads;
  const bool is_worth = 2 * k <= most ? 10 * k <= 7 * vectors : 2 * k <= vectors;
  return is_worth && !is_wide ? TOP_K_LANE_VECTORS * threads : 0;
}

// Of the same width, for kernels that only move elements.
DataType WordType(DataType type) {
  static constexpr DataType kTypes[] = {DataType::kUint8, DataType::kUint16, DataType::kUint32,
                                        DataType::kUint64};
  return kTypes[std::bit_width(ElementBytes(type)) - 1];
}

}  // namespace

std::vector<IterationSpace> Planner::Pieces() const {
  if (!choice_.gathers) return {space_};
  return SliceReduced(space_, {.positions = choice_.piece_length});
}

Planner::Elements Planner::ElementsOf(const IterationSpace& piece) const {
  if (!choice_.gathers) return {.space = piece};
  Elements rows = {.role = BufferRole::Scratch(), .offset_bytes = gathered_at_, .space = piece};
  rows.space.bases[kInputTensor] = 0;
  uint64_t stride = choice_.row_stride;
  for (auto dim = rows.space.kept.rbegin(); dim != rows.space.kept.rend(); ++dim) {
    dim->strides[kInputTensor] = stride;
    stride *= dim->size;
  }
  for (SpaceDim& dim : rows.space.reduced) dim.strides[kInputTensor] = 1;
  return rows;
}

void Planner::Gather(const IterationSpace& piece) {
  if (!choice_.gathers) return;
  SliceLimits limits = LimitsFor(type_, type_, builder_.options());
  limits.elements[kOutputTensor] = kNoLimit;
  limits.positions = builder_.options().max_view_elements - kVectorBytes;
  const uint32_t kernel = builder_.Kernel({"top_k_gather",
                                           "GatherRows",
                                           {{"DATA_TYPE", static_cast<uint32_t>(WordType(type_))},
                                            {"THREADS", Narrow(MostThreads(builder_.options()))}}});
  const uint64_t rows = std::min(std::bit_ceil(sequences_), uint64_t{TOP_K_TILE_ROWS});
  for (const IterationSpace& part : SliceReduced(piece, limits)) {
    const uint64_t length = part.position_count();
    const PlacedView from = ReadElements(type_, part.bases[kInputTensor], part.Span(kInputTensor));
    PlacedView to =
        WriteElements(BufferRole::Scratch(), type_, part.first_position - piece.first_position,
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
    constants.element_stride = Narrow(Along(part).strides[kInputTensor]);
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

void Planner::Select() {
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
    SelectInto(list, first_record, parts[i], false);
    first_record += SelectedRecords(parts[i], choice_.chunk_length);
    builder_.NextPass();
  }
  while (list.length > choice_.record_chunk) {
    const std::vector<Part> of_list = ListParts(list);
    const List shorter = NewList(SelectedRecords(of_list, choice_.record_chunk));
    SelectInto(shorter, 0, of_list, true);
    builder_.NextPass();
    list = shorter;
  }
  SelectResults(ListParts(list)[0], true);
}

std::pair<uint64_t, uint64_t> Planner::Chunks(uint64_t length, uint64_t most) {
  const uint64_t chunk = RoundUp(EvenPart(length, most), kVectorBytes);
  return {CeilDiv(length, chunk), chunk};
}

uint64_t Planner::SelectedRecords(const std::vector<Part>& parts, uint64_t chunk_length) const {
  uint64_t records = 0;
  for (const Part& part : parts) {
    const auto [chunks, chunk] = Chunks(part.items.length, chunk_length);
    records += (chunks - 1) * k_ + std::min(k_, part.items.length - (chunks - 1) * chunk);
  }
  return records;
}

Dispatch Planner::SelectFrom(const Part& part, bool of_records, ShaderMacro result,
                             TopKChunkConstants constants) const {
  const auto [chunks, chunk] =
      Chunks(part.items.length, of_records ? choice_.record_chunk : choice_.chunk_length);
  SetDims(part.space.kept, constants.kept, constants.kept_rank);
  constants.groups.unit_count = Narrow(sequences_ * chunks);
  constants.items = part.items;
  constants.ranks.k = Narrow(k_);
  constants.chunks = Narrow(chunks);
  constants.chunk_length = Narrow(chunk);
  const bool walks = of_records ? k_ <= TOP_K_MOST_WALKED && part.items.length <= kMaxWalked &&
                                      AreEnoughToWalk(sequences_, builder_.options())
                                : choice_.walks;
  const uint64_t lane_items = LaneItems(type_, of_records);
  const uint64_t items =
      std::min<uint64_t>(chunk, part.items.length) + (of_records ? 0 : choice_.skipped);
  uint64_t threads = walks ? builder_.options().threads : choice_.threads;
  // Chunks that leave records are of longer sequences, and seldom short.
  if (!walks && result.value != RESULT_RECORDS) {
    threads = std::min(threads, std::max({std::bit_ceil(CeilDiv(items, lane_items)), kLeastThreads,
                                          LeastThreads(type_, k_)}));
  }
  KernelPermutation kernel = walks ? Kernel("top_k_walk", "WalkChunks", threads)
                                   : Kernel("top_k_select", "SelectBest", threads);
  kernel.macros.push_back(SourceMacro(of_records));
  kernel.macros.push_back(std::move(result));
  if (walks) {
    kernel.macros.push_back({"BEST_COUNT", Narrow(RoundUp(k_, kBestStep))});
  } else {
    const uint64_t capacity = SelectCapacity(type_, threads);
    const uint64_t most = Most(k_, capacity);
    const uint64_t vectors = CeilDiv(items, lane_items / TOP_K_LANE_VECTORS);
    constants.most = Narrow(most);
    constants.leaders = Narrow(Leaders(k_, most, threads, vectors, ElementBytes(type_) == 8));
    kernel.macros.push_back({"DIGIT_BITS", Narrow(std::bit_width(capacity) - 1)});
    kernel.macros.push_back({"MANY", most > Few(capacity) ? 1u : 0u});
  }
  Dispatch dispatch;
  dispatch.kernel = builder_.Kernel(std::move(kernel));
  dispatch.reads[0] = part.view;
  dispatch.constants = constants;
  SetGroups(dispatch, CeilDiv(sequences_ * chunks, walks ? threads : 1));
  return dispatch;
}

void Planner::SelectInto(const List& to, uint64_t first_record, const std::vector<Part>& parts,
                         bool of_records) {
  const uint64_t chunk = of_records ? choice_.record_chunk : choice_.chunk_length;
  for (const Part& part : parts) {
    const uint64_t records = SelectedRecords({part}, chunk);
    // Views start at a multiple of 16 bytes. Only the list of a single sequence has several.
    const bool is_one = sequences_ * to.length <= builder_.options().max_view_elements;
    const uint64_t first = is_one ? 0 : first_record / 2 * 2;
    TopKChunkConstants constants = {};
    constants.ranks = {.first = 0, .count = Narrow(k_), .k = 0, .unused = 0};
    constants.first_record = Narrow(first_record - first);
    constants.record_stride = Narrow(to.length);
    Dispatch dispatch = SelectFrom(part, of_records, RecordsMacro(), constants);
    dispatch.writes[0] =
        ListView(to, first, is_one ? sequences_ * to.length : constants.first_record + records);
    builder_.Add(std::move(dispatch));
    first_record += records;
  }
}

void Planner::SelectResults(const Part& part, bool of_records) {
  for (const IterationSpace& ranks : RankParts()) {
    Dispatch outputs;
    TopKChunkConstants constants = {};
    constants.outputs = WriteRanks(outputs, ranks);
    constants.ranks = {.first = Narrow(ranks.first_position),
                       .count = Narrow(ranks.position_count()),
                       .k = 0,
                       .unused = 0};
    Dispatch dispatch = SelectFrom(part, of_records, ResultMacro(), constants);
    dispatch.writes = outputs.writes;
    builder_.Add(std::move(dispatch));
  }
}

}  // namespace opmill::top_k
