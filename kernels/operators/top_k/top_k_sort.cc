// Sorts runs in registers, and merges them.
#include <bit>

#include "kernels/operators/reduction/reduction_walk.h"
#include "kernels/operators/top_k/top_k_slice.h"

namespace opmill::top_k {
namespace {

// The number of candidates that a lane keeps in registers: few different values, because each is a
// separate kernel.
uint64_t LanePlaces(uint64_t kept) {
  if (kept <= 4) return std::bit_ceil(kept);
  const uint64_t step = kept <= 16 ? 4 : 8;
  return CeilDiv(kept, step) * step;
}

}  // namespace

uint64_t TopKSlice::RunLength(uint64_t length) const {
  if (!lane_keeps_) return std::min(length, tuning::kMaxLaneKeep);
  const PlanOptions& options = builder_.options();
  const uint64_t runs_wanted = std::max<uint64_t>(1, options.parallel_lanes() / sequences_);
  return std::clamp(CeilDiv(length, runs_wanted), std::min(length, LeastRun(k_, options)),
                    tuning::kMaxLaneCandidates);
}

Layout TopKSlice::WalkOf(const IterationSpace& part) const {
  return LayoutOf(part) == Layout::kRows ? Layout::kRows : Layout::kStrided;
}

KernelPermutation TopKSlice::KeepKernel(Source source, Layout layout, uint64_t kept,
                                        bool writes_results) const {
  std::vector<ShaderMacro> macros = Macros(writes_results);
  macros.push_back({"SOURCE", static_cast<uint32_t>(source)});
  macros.push_back({"LAYOUT", static_cast<uint32_t>(layout)});
  macros.push_back({"KEEP", static_cast<uint32_t>(LanePlaces(kept))});
  return {"top_k", "KeepBest", std::move(macros)};
}

Dispatch TopKSlice::KeepDispatch(Source source, Layout layout, uint64_t kept, const List& into) {
  return builder_.WritingRecords(KeepKernel(source, layout, kept, false), into.view);
}

TopKKeepConstants TopKSlice::Keeping(uint64_t length, uint64_t run, uint64_t kept, const List& into,
                                     uint64_t base) const {
  TopKKeepConstants constants = {};
  constants.sequences = static_cast<uint32_t>(sequences_);
  constants.list_length = static_cast<uint32_t>(length);
  constants.run_length = static_cast<uint32_t>(run);
  constants.kept_count = static_cast<uint32_t>(kept);
  constants.first_record = static_cast<uint32_t>(base);
  constants.record_stride = static_cast<uint32_t>(into.sequence_stride);
  return constants;
}

void TopKSlice::AddKeeping(Dispatch dispatch, Source source, const TopKKeepConstants& constants) {
  const PlanOptions& options = builder_.options();
  const uint64_t run = constants.run_length;
  const uint64_t units = sequences_ * CeilDiv(constants.list_length, run);
  const uint64_t turns = source == Source::kElements ? TurnsOf(units, run, options) : 1;
  dispatch.constants = constants;
  DealUnits(dispatch, units, turns, options.threads);
  builder_.Add(std::move(dispatch));
}

void TopKSlice::AddSortRuns(const List* source, const IterationSpace* part, uint64_t length,
                            uint64_t run, uint64_t kept, const List& into, uint64_t base) {
  TopKKeepConstants constants = Keeping(length, run, kept, into, base);
  if (source != nullptr) {
    // One kernel serves the lists of every layout.
    Dispatch dispatch = KeepDispatch(Source::kRecords, Layout::kStrided, kept, into);
    dispatch.reads[1] = source->view;
    constants.list_stride = static_cast<uint32_t>(source->sequence_stride);
    constants.list_item_stride = static_cast<uint32_t>(source->item_stride);
    AddKeeping(std::move(dispatch), Source::kRecords, constants);
  } else {
    Dispatch dispatch = KeepDispatch(Source::kElements, WalkOf(*part), kept, into);
    constants.part = ReadPart(dispatch, *part);
    SetDims(part->kept, constants.kept, constants.kept_rank);
    AddKeeping(std::move(dispatch), Source::kElements, constants);
  }
}

List TopKSlice::SortElements() {
  const uint64_t run = RunLength(length_);
  const uint64_t kept = std::min(run, k_);
  uint64_t run_count = 0;
  for (const IterationSpace& part : parts_) run_count += CeilDiv(part.index_count(), run);
  const List runs = NewList(run_count * kept);
  uint64_t base = 0;
  for (const IterationSpace& part : parts_) {
    AddSortRuns(nullptr, &part, part.index_count(), run, kept, runs, base);
    base += CeilDiv(part.index_count(), run) * kept;
  }
  builder_.NextPass();
  if (run_count == 1) return runs;
  return lane_keeps_ ? SortList(runs) : MergeAll(runs, run_count, {});
}

List TopKSlice::SortList(List list) {
  for (;;) {
    const uint64_t run = RunLength(list.length);
    const uint64_t run_count = CeilDiv(list.length, run);
    const uint64_t kept = std::min(run, k_);
    const List runs = NewList(run_count * kept);
    AddSortRuns(&list, nullptr, list.length, run, kept, runs, 0);
    builder_.NextPass();
    if (run_count == 1) return runs;
    list = runs;
  }
}

List TopKSlice::SortSelection(const Selection& selection) {
  const List& taken = selection.taken;
  const List sorted = AddSpread(selection);
  // Powers of two, to limit the number of kernels; shorter than the taken candidates, so that a
  // merge writes the last list.
  const uint64_t run = std::min(RunLength(taken.length), std::bit_floor(k_));
  const uint64_t run_count = CeilDiv(taken.length, run);
  List runs = NewList(run_count * run);
  Dispatch dispatch = KeepDispatch(Source::kRecords, Layout::kStrided, run, runs);
  dispatch.reads = {selection.candidates.view, taken.view};
  dispatch.writes[1] = taken.headers;
  TopKKeepConstants constants = Keeping(taken.length, run, run, runs);
  constants.list_stride = static_cast<uint32_t>(taken.sequence_stride);
  constants.list_item_stride = static_cast<uint32_t>(taken.item_stride);
  constants.counted = 1;
  constants.candidate_stride = static_cast<uint32_t>(selection.candidates.sequence_stride);
  AddKeeping(std::move(dispatch), Source::kRecords, constants);
  builder_.NextPass();
  runs.headers = taken.headers;
  return MergeAll(runs, run_count, sorted);
}

List TopKSlice::AddSpread(const Selection& selection) {
  const List& candidates = selection.candidates;
  const List& taken = selection.taken;
  if (taken.length > tuning::kMaxPlaces * tuning::kMaxOfPlace || length_ > uint64_t{1} << 31 ||
      selection.view.element_count > builder_.options().max_view_elements) {
    return {};
  }
  const List spread = NewList(taken.length);
  const List sorted = NewList(k_);
  // Only the width of keys matters.
  static constexpr DataType kTypes[] = {DataType::kUint8, DataType::kUint16, DataType::kUint32,
                                        DataType::kUint64};
  const DataType type = kTypes[std::bit_width(ElementBytes(type_)) - 1];
  const std::vector<ShaderMacro> macros = {{"DATA_TYPE", static_cast<uint32_t>(type)},
                                           {"THREADS", builder_.options().threads},
                                           {"LARGEST", 1},
                                           {"NAN_FIRST", 0}};
  Dispatch dispatch =
      builder_.WritingRecords({"top_k_spread", "SpreadCandidates", macros}, spread.view);
  dispatch.reads[1] = selection.view;
  dispatch.writes[1] = taken.headers;
  const uint64_t places = std::min(std::bit_ceil(taken.length), tuning::kMaxPlaces);
  const TopKSpreadConstants constants = {
      .groups = {},
      .sequences = static_cast<uint32_t>(sequences_),
      .length = static_cast<uint32_t>(length_),
      .k = static_cast<uint32_t>(k_),
      .place_bits = static_cast<uint32_t>(std::bit_width(places) - 1),
      .candidate_stride = static_cast<uint32_t>(candidates.sequence_stride),
      .taken_stride = static_cast<uint32_t>(taken.sequence_stride),
      .spread_stride = static_cast<uint32_t>(spread.sequence_stride)};
  dispatch.constants = constants;
  SetGroups(dispatch, sequences_);
  builder_.Add(std::move(dispatch));
  builder_.NextPass();

  dispatch = builder_.WritingRecords({"top_k_spread", "RankCandidates", macros}, sorted.view);
  dispatch.reads[1] = spread.view;
  dispatch.writes[1] = taken.headers;
  dispatch.constants = constants;
  SetUnitsInTurns(dispatch, sequences_ * spread.length, tuning::kMaxLaneResults);
  builder_.Add(std::move(dispatch));
  return sorted;
}

List TopKSlice::MergeAll(List runs, uint64_t run_count, const List& last) {
  uint64_t run_length = runs.length / run_count;
  uint64_t run_elements = run_length;
  const uint64_t count = runs.length;
  List spare = NewList(runs.length);
  while (run_count > 1) {
    const uint64_t merged_length = std::min(run_length * 2, k_);
    const uint64_t merged_count = CeilDiv(run_count, 2);
    // All merged runs are full except the last one.
    const uint64_t rest = runs.length - (merged_count - 1) * 2 * run_length;
    List merged = merged_count == 1 && last.length > 0 ? last : spare;
    merged.length = (merged_count - 1) * merged_length + std::min(merged_length, rest);
    merged.sequence_stride = merged.length;
    merged.headers = runs.headers;
    Dispatch dispatch =
        builder_.WritingRecords({"top_k_merge", "MergeRuns", Macros(false)}, merged.view);
    dispatch.reads[1] = runs.view;
    dispatch.writes[1] = runs.headers;
    dispatch.constants =
        TopKMergeConstants{.groups = {},
                           .list_length = static_cast<uint32_t>(count),
                           .run_elements = static_cast<uint32_t>(run_elements),
                           .run_length = static_cast<uint32_t>(run_length),
                           .merged_count = static_cast<uint32_t>(merged_count),
                           .merged_length = static_cast<uint32_t>(merged_length),
                           .list_stride = static_cast<uint32_t>(runs.sequence_stride),
                           .record_stride = static_cast<uint32_t>(merged.sequence_stride),
                           .counted = runs.headers.element_count > 0 ? 1u : 0u};
    const uint64_t chunks = sequences_ * merged_count * CeilDiv(merged_length, tuning::kMergeChunk);
    SetUnitsInTurns(dispatch, chunks, tuning::kMaxLaneChunks);
    builder_.Add(std::move(dispatch));
    builder_.NextPass();
    spare = runs;
    runs = merged;
    run_count = merged_count;
    run_length = merged_length;
    run_elements *= 2;
  }
  return runs;
}

}  // namespace opmill::top_k
