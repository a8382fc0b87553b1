// Selects the k best elements from the keys of blocks: in registers, or by a cut.
#include <bit>

#include "kernels/base/rounding.h"
#include "kernels/operators/top_k/top_k_slice.h"

namespace opmill::top_k {

List TopKSlice::KeepOfKeys(const Keys& keys) {
  const uint64_t run = CeilDiv(RunLength(keys.length), TOP_K_KEY_STEP) * TOP_K_KEY_STEP;
  const uint64_t kept = std::min(run, k_);
  const List runs = NewList(CeilDiv(keys.length, run) * kept);
  Dispatch dispatch = KeepDispatch(Source::kKeys, keys.layout, kept, runs);
  dispatch.reads[1] = keys.view;
  TopKKeepConstants constants = Keeping(keys.length, run, kept, runs);
  constants.keys = keys.constants();
  AddKeeping(std::move(dispatch), Source::kKeys, constants);
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
  uint64_t first_block = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const IterationSpace& part = parts_[p];
    Dispatch dispatch = KeepDispatch(Source::kBlocks, keys.layout, kept, runs);
    dispatch.reads[1] = winners.view;
    dispatch.writes[1] = InFormat(keys.runners, ViewFormat::kUint32);
    TopKKeepConstants constants = Keeping(length, run, kept, runs);
    constants.part = ReadPart(dispatch, part);
    constants.keys = keys.constants();
    SetDims(part.kept, constants.kept, constants.kept_rank);
    constants.list_stride = static_cast<uint32_t>(winners.sequence_stride);
    constants.winners = static_cast<uint32_t>(winners.length);
    constants.block_length = static_cast<uint32_t>(block);
    constants.block_count = static_cast<uint32_t>(keys.part_lengths[p]);
    constants.first_block = static_cast<uint32_t>(first_block);
    first_block += keys.part_lengths[p];
    AddKeeping(std::move(dispatch), Source::kBlocks, constants);
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
         4 * sequences_ * records <= options.max_view_elements && FitsWhole();
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
  TopKSelectConstants search = {};
  search.keys = keys.constants();
  search.sequences = static_cast<uint32_t>(sequences_);
  search.k = static_cast<uint32_t>(k_);
  search.most = static_cast<uint32_t>(MostBlocks(k_));
  Dispatch find = {.kernel = builder_.Kernel({"top_k_select", "FindCut", macros})};
  find.reads[1] = keys.view;
  find.writes[1] = taken.headers;
  find.constants = search;
  SetGroups(find, search_groups);
  builder_.Add(std::move(find));
  builder_.NextPass();

  const uint64_t window = Window(keys.layout, VectorElements());
  uint64_t first_block = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    Dispatch collect = writing("top_k_collect", "CollectAbove", candidates);
    collect.reads[1] = keys.view;
    collect.writes[1] = taken.headers;
    TopKCollectConstants constants = {};
    constants.part = ReadPart(collect, parts_[p]);
    constants.keys = keys.constants();
    SetDims(parts_[p].kept, constants.kept, constants.kept_rank);
    constants.sequences = static_cast<uint32_t>(sequences_);
    constants.block_length = static_cast<uint32_t>(block);
    constants.block_count = static_cast<uint32_t>(keys.part_lengths[p]);
    constants.first_block = static_cast<uint32_t>(first_block);
    constants.candidate_stride = static_cast<uint32_t>(candidates.sequence_stride);
    if (block >= window) {
      constants.skips_blocks = 1;
      constants.block_window_bits = static_cast<uint32_t>(std::bit_width(block / window) - 1);
    }
    const uint64_t windows = CeilDiv(keys.part_lengths[p] * block, window);
    // An odd number, so that lanes do not share a cache set.
    const uint64_t turns =
        alone ? windows : options.turns(sequences_ * windows, tuning::kMaxLaneWindows) | 1;
    const uint64_t lanes = CeilDiv(windows, turns);
    const bool side_by_side = options.prefers_wide_rows && keys.layout == Layout::kRows;
    constants.sequence_lanes = static_cast<uint32_t>(lanes);
    constants.lane_windows = static_cast<uint32_t>(turns);
    constants.lane_stride = static_cast<uint32_t>(side_by_side ? 1 : turns);
    constants.window_stride = static_cast<uint32_t>(side_by_side ? lanes : 1);
    collect.constants = constants;
    const bool takes_sets = alone && keys.layout == Layout::kColumns;
    DealUnits(collect,
              takes_sets ? sequences_ / keys.columns * keys.item_stride / 4 : sequences_ * lanes, 1,
              options.threads);
    builder_.Add(std::move(collect));
    first_block += keys.part_lengths[p];
  }
  builder_.NextPass();

  Dispatch take = writing("top_k_select", "TakeBest", taken);
  take.reads[0] = candidates.view;
  take.writes[1] = taken.headers;
  search.most = static_cast<uint32_t>(taken.length);
  search.candidate_stride = static_cast<uint32_t>(candidates.sequence_stride);
  search.taken_stride = static_cast<uint32_t>(taken.sequence_stride);
  take.constants = search;
  SetGroups(take, search_groups);
  builder_.Add(std::move(take));
  builder_.NextPass();
  return selection;
}

}  // namespace opmill::top_k
