// Selects the k best elements from the keys of blocks: in registers, or by a cut.
#include <bit>

#include "kernels/base/rounding.h"
#include "kernels/operators/top_k/top_k_slice.h"

namespace opmill::top_k {

List TopKSlice::KeepOfKeys(const Keys& keys) {
  const uint64_t run = CeilDiv(RunLength(keys.length), kKeyStep) * kKeyStep;
  const uint64_t kept = std::min(run, k_);
  const List runs = NewList(CeilDiv(keys.length, run) * kept);
  Dispatch dispatch = KeepDispatch(Source::kKeys, keys.layout, keys.length, run, kept, runs, 0);
  dispatch.reads[1] = keys.view;
  SetKeys(dispatch.constants, keys);
  builder_.Add(std::move(dispatch));
  builder_.NextPass();
  return runs.length == kept ? runs : SortList(runs);
}

List TopKSlice::KeepOfBlocks(const List& winners, const Keys& keys, uint64_t block) {
  const uint64_t length = k_ * block;
  uint64_t run = RunLength(length);
  // Dispatches over several parts share the runs; each run is in the part of its block.
  run = run >= block && parts_.size() == 1 ? CeilDiv(run, block) * block : std::bit_floor(run);
  run = std::max(run, VectorElements());
  if (parts_.size() > 1) run = std::min(run, block);
  const uint64_t kept = std::min(run, k_);
  const List runs = NewList(CeilDiv(length, run) * kept);
  uint64_t block_base = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const IterationSpace& part = parts_[p];
    Dispatch dispatch = KeepDispatch(Source::kBlocks, keys.layout, length, run, kept, runs, 0);
    ReadPart(dispatch, part);
    dispatch.reads[1] = winners.view;
    DispatchConstants& constants = dispatch.constants;
    SetDims(constants, part, part.kept.size(), part.reduced.size());
    SetRead(constants, winners);
    SetKeys(constants, keys);
    dispatch.writes[1] = InFormat(keys.runners, ViewFormat::kUint32);
    constants.runs = static_cast<uint32_t>(winners.length);
    constants.block_length = static_cast<uint32_t>(block);
    constants.block_base = static_cast<uint32_t>(block_base);
    constants.block_count = static_cast<uint32_t>(keys.part_lengths[p]);
    block_base += keys.part_lengths[p];
    builder_.Add(std::move(dispatch));
  }
  builder_.NextPass();
  return runs.length == kept ? runs : SortList(runs);
}

Selection TopKSlice::NewSelection(uint64_t block, bool alone) {
  const uint64_t candidates = MostCandidates(length_, k_, block);
  const uint64_t taken = MostTaken(k_);
  const uint64_t headers_records = sequences_ * kHeaderRecords;
  const uint64_t candidates_records = sequences_ * ListRecords(candidates, alone);
  const uint64_t taken_records = sequences_ * ListRecords(taken, alone);
  const uint64_t records = headers_records + candidates_records + taken_records;
  const uint64_t at = builder_.ReserveRecords(records);
  const uint64_t candidates_at = at + headers_records * kVectorBytes;
  const uint64_t taken_at = candidates_at + candidates_records * kVectorBytes;
  return {.alone = alone,
          .view = Records(at, records),
          .candidates = {.view = Records(candidates_at, candidates_records),
                         .length = candidates,
                         .sequence_stride = ListRecords(candidates, alone)},
          .taken = {.view = Records(taken_at, taken_records),
                    .headers = InFormat(Records(at, headers_records), ViewFormat::kUint32),
                    .length = taken,
                    .sequence_stride = ListRecords(taken, alone)}};
}

bool TopKSlice::SelectsAlone(const Keys& keys, uint64_t block) const {
  const PlanOptions& options = builder_.options();
  const bool worth = keys.length <= tuning::kMaxLoneKeys ||
                     sequences_ >= options.parallel_lanes() / tuning::kLoneLanes;
  const uint64_t windows = CeilDiv(keys.length * block, Window(keys.layout, VectorElements()));
  const uint64_t most =
      VectorElements() == 2 ? tuning::kMaxWideRankedSelection : tuning::kMaxRankedSelection;
  const uint64_t records = kHeaderRecords + ListRecords(MostCandidates(length_, k_, block), true) +
                           ListRecords(MostTaken(k_), true);
  return worth && !options.prefers_wide_rows && k_ <= most && windows <= tuning::kMaxLoneWindows &&
         4 * sequences_ * records <= options.max_view_elements && WholeDispatch().has_value();
}

Selection TopKSlice::SelectFromBlocks(const Keys& keys, uint64_t block) {
  const PlanOptions& options = builder_.options();
  const bool alone = SelectsAlone(keys, block);
  const Selection selection = NewSelection(block, alone);
  const List& candidates = selection.candidates;
  const List& taken = selection.taken;
  std::vector<ShaderMacro> macros = Macros(false);
  macros.push_back({"LAYOUT", static_cast<uint32_t>(keys.layout)});
  macros.push_back({"ALONE", alone ? 1u : 0u});
  const uint64_t search_groups = alone ? CeilDiv(sequences_, options.threads) : sequences_;
  const auto writing = [&](const char* shader, const char* entry, const List& list) {
    const KernelPermutation kernel = {shader, entry, macros};
    if (!alone) return builder_.WritingRecords(kernel, list.view);
    Dispatch dispatch = {.kernel = builder_.Kernel(kernel)};
    dispatch.writes[0] = InFormat(list.view, ViewFormat::kUint32);
    return dispatch;
  };
  const auto for_all = [&](Dispatch dispatch) {
    dispatch.constants.sequences = static_cast<uint32_t>(sequences_);
    dispatch.constants.k = static_cast<uint32_t>(k_);
    dispatch.writes[1] = taken.headers;
    return dispatch;
  };

  Dispatch find = for_all({.kernel = builder_.Kernel({"top_k_select", "FindCut", macros})});
  find.constants.runs = static_cast<uint32_t>(MostBlocks(k_));
  find.constants.list_length = static_cast<uint32_t>(keys.length);
  SetKeys(find.constants, keys);
  find.reads[1] = keys.view;
  SetGroups(find, search_groups);
  builder_.Add(std::move(find));
  builder_.NextPass();

  const uint64_t window = Window(keys.layout, VectorElements());
  uint64_t part_base = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    Dispatch collect = for_all(writing("top_k_collect", "CollectAbove", candidates));
    DispatchConstants& constants = collect.constants;
    SetKeys(constants, keys);
    ReadPart(collect, parts_[p]);
    collect.reads[1] = keys.view;
    constants.record_stride = static_cast<uint32_t>(candidates.sequence_stride);
    SetDims(constants, parts_[p], parts_[p].kept.size(), parts_[p].reduced.size());
    constants.block_length = static_cast<uint32_t>(block);
    constants.block_base = static_cast<uint32_t>(part_base);
    constants.block_count = static_cast<uint32_t>(keys.part_lengths[p]);
    if (block >= window) {
      constants.item_count = static_cast<uint32_t>(block / window);
      constants.lane_bits = static_cast<uint32_t>(std::bit_width(block / window) - 1);
    }
    const uint64_t windows = CeilDiv(keys.part_lengths[p] * block, window);
    // An odd number, so that lanes do not share a cache set.
    const uint64_t turns =
        alone ? windows : options.turns(sequences_ * windows, tuning::kMaxLaneWindows) | 1;
    const uint64_t runs = CeilDiv(windows, turns);
    const bool side_by_side = options.prefers_wide_rows && keys.layout == Layout::kRows;
    constants.runs = static_cast<uint32_t>(runs);
    constants.split_items = static_cast<uint32_t>(turns);
    constants.read_stride = static_cast<uint32_t>(side_by_side ? 1 : turns);
    constants.read_item_stride = static_cast<uint32_t>(side_by_side ? runs : 1);
    const bool takes_sets = alone && keys.layout == Layout::kColumns;
    SetUnits(collect,
             takes_sets ? sequences_ / keys.columns * keys.item_stride / 4 : sequences_ * runs,
             options.threads);
    builder_.Add(std::move(collect));
    part_base += keys.part_lengths[p];
  }
  builder_.NextPass();

  Dispatch take = for_all(writing("top_k_select", "TakeBest", taken));
  take.constants.runs = static_cast<uint32_t>(taken.length);
  take.reads[0] = candidates.view;
  SetRead(take.constants, candidates);
  take.constants.record_stride = static_cast<uint32_t>(taken.sequence_stride);
  SetGroups(take, search_groups);
  builder_.Add(std::move(take));
  builder_.NextPass();
  return selection;
}

}  // namespace opmill::top_k
