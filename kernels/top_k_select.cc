// From the keys of blocks to the k best elements: in registers, or by a cut.
#include "kernels/rounding.h"
#include "kernels/top_k_slice.h"

namespace opmill::top_k {
namespace {

// Words of a selection's scratch before its candidates: CANDIDATES_AT in top_k_select.hlsl.
constexpr uint64_t kSelectHeaderWords = 4;

}  // namespace

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
  // Dispatches over several parts share the runs: each run lies in the part of its block.
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

List TopKSlice::SelectFromBlocks(const Keys& keys, uint64_t block) {
  const uint64_t most = MostBlocks(k_);
  const uint64_t words = RoundUp(kSelectHeaderWords + most * block * CandidateWords(type_), 4);
  const uint64_t records = words * sequences_ / 4;
  const BufferView work =
      InFormat(Records(builder_.ReserveRecords(records), records), ViewFormat::kUint32);
  const List best = NewList(k_);
  std::vector<ShaderMacro> macros = Macros(false);
  macros.push_back({"LAYOUT", static_cast<uint32_t>(keys.layout)});
  const auto add = [&](const char* entry, const IterationSpace* part, uint64_t part_base,
                       uint64_t part_length) {
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel({"top_k_select", entry, macros});
    DispatchConstants& constants = dispatch.constants;
    constants.sequences = static_cast<uint32_t>(sequences_);
    constants.record_stride = static_cast<uint32_t>(words);
    constants.k = static_cast<uint32_t>(k_);
    constants.runs = static_cast<uint32_t>(most);
    constants.list_length = static_cast<uint32_t>(keys.length);
    SetKeys(constants, keys);
    dispatch.reads[1] = keys.view;
    dispatch.writes = {best.view, work};
    if (part != nullptr) {
      ReadPart(dispatch, *part);
      SetDims(constants, *part, part->kept.size(), part->reduced.size());
      constants.block_length = static_cast<uint32_t>(block);
      constants.block_base = static_cast<uint32_t>(part_base);
      constants.block_count = static_cast<uint32_t>(part_length);
      const uint64_t group_blocks =
          std::max<uint64_t>(builder_.options().threads, tuning::kGroupBytes / 16 / block);
      constants.split_items = static_cast<uint32_t>(group_blocks);
      constants.splits = static_cast<uint32_t>(CeilDiv(part_length, group_blocks));
      SetGroups(dispatch, sequences_ * constants.splits);
    } else {
      SetGroups(dispatch, sequences_);
    }
    builder_.Add(std::move(dispatch));
  };
  add("FindCut", nullptr, 0, 0);
  builder_.NextPass();
  uint64_t part_base = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    add("CollectAbove", &parts_[p], part_base, keys.part_lengths[p]);
    part_base += keys.part_lengths[p];
  }
  builder_.NextPass();
  add("TakeBest", nullptr, 0, 0);
  builder_.NextPass();
  return best;
}

}  // namespace opmill::top_k
