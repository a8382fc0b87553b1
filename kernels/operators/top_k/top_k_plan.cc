// top_k: makes slices whose lists fit into scratch, and plans each one from its elements to its
// results.
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/operators/reduction/reduction_walk.h"
#include "kernels/operators/top_k/top_k_slice.h"

namespace opmill {
namespace top_k {
namespace {

// A block of about `wanted` elements, at least `least`. If there were fewer than twice k blocks,
// too many of them would be among the best.
uint64_t BlockLength(uint64_t length, uint64_t k, uint64_t least, uint64_t wanted) {
  uint64_t block = std::clamp(wanted, least, tuning::kMaxBlockElements);
  while (block > least && length / block < 2 * k) block /= 2;
  return block;
}

// The elements per block if lanes keep the best candidates, where a key costs as much as testing
// kKeyWorth elements; 0 if sorting everything is cheaper.
uint64_t KeepBlock(uint64_t length, uint64_t k, uint64_t vector_elements, Layout layout,
                   const PlanOptions& options) {
  const bool columns = layout == Layout::kColumns;
  const double key_worth = columns ? tuning::kColumnKeyWorth : tuning::kKeyWorth;
  const uint64_t least = options.prefers_wide_rows ? tuning::kMinWideTournament
                         : columns                 ? tuning::kMinColumnTournament
                                                   : tuning::kMinTournament;
  const double wanted = std::sqrt(key_worth * static_cast<double>(length) / k);
  const uint64_t block =
      BlockLength(length, k, std::max(vector_elements, tuning::kMinBlockElements),
                  std::bit_ceil(static_cast<uint64_t>(wanted)));
  return length > least && length / block >= 2 * k ? block : 0;
}

// The same if a cut is searched. If there are enough blocks, a block is at least one window of
// rows, which is not read again if its key excludes it.
uint64_t SelectBlock(uint64_t length, uint64_t k, uint64_t vector_elements) {
  const double wanted = std::sqrt(tuning::kSelectWorth * static_cast<double>(length) / k);
  const uint64_t block = BlockLength(length, k, vector_elements,
                                     std::max(std::bit_floor(static_cast<uint64_t>(wanted)),
                                              Window(Layout::kRows, vector_elements)));
  // If there are few blocks, a cut among them may leave all elements to the next cut.
  const uint64_t enough = length <= tuning::kMaxHalved ? 2 * k : 2 * k * block;
  return length >= enough ? block : 0;
}

}  // namespace

void TopKSlice::Plan() {
  const uint64_t select_block = lane_keeps_ ? 0 : SelectBlock(length_, k_, VectorElements());
  if (RankResults(select_block > 0)) return;
  const uint64_t keep_block = lane_keeps_ ? KeepBlock(length_, k_, VectorElements(),
                                                      LayoutOf(parts_[0]), builder_.options())
                                          : 0;
  if (select_block > 0) {
    const Selection selection = SelectFromBlocks(BlockKeys(select_block), select_block);
    if (selection.alone) {
      RankSelection(selection);
    } else {
      WriteResults(SortSelection(selection));
    }
  } else if (keep_block > 0) {
    const Keys keys = BlockKeys(keep_block);
    WriteResults(KeepOfBlocks(KeepOfKeys(keys), keys, keep_block));
  } else if (!KeepResults()) {
    WriteResults(SortElements());
  }
}

std::vector<IterationSpace> TopKSlice::Ranks() const {
  IterationSpace ranks = space_;
  ranks.index_base = 0;
  ranks.reduced = {{.size = k_,
                    .input_stride = 0,
                    .output_stride = EffectiveStrides(*desc_.output_values)[desc_.axis],
                    .index_stride = EffectiveStrides(*desc_.output_indices)[desc_.axis]}};
  SliceLimits limits = LimitsFor(type_, type_, builder_.options());
  limits.input_elements = ~uint64_t{0};
  limits.index_elements =
      LimitsFor(type_, desc_.output_indices->data_type, builder_.options()).output_elements;
  return SliceReduced(ranks, limits);
}

TopKOutputs TopKSlice::WriteRanks(Dispatch& dispatch, const IterationSpace& ranks) const {
  const PlacedView values = WriteElements(BufferRole::Output(), type_, ranks.output_base,
                                          OutputSpan(ranks.kept) + OutputSpan(ranks.reduced));
  const PlacedView indices =
      WriteElements(BufferRole::Output(1), desc_.output_indices->data_type, ranks.output2_base,
                    IndexSpan(ranks.kept) + IndexSpan(ranks.reduced));
  dispatch.writes = {values.view, indices.view};
  const SpaceDim along = ranks.reduced.empty() ? SpaceDim() : ranks.reduced[0];
  return {.values_base = values.base,
          .indices_base = indices.base,
          .value_stride = static_cast<uint32_t>(along.output_stride),
          .index_stride = static_cast<uint32_t>(along.index_stride)};
}

bool TopKSlice::KeepResults() {
  if (!lane_keeps_ || RunLength(length_) < length_ || !FitsWhole()) return false;
  Dispatch dispatch;
  dispatch.kernel = builder_.Kernel(KeepKernel(Source::kElements, WalkOf(parts_[0]), k_, true));
  TopKKeepConstants constants = Keeping(length_, length_, k_);
  constants.part = ReadPart(dispatch, parts_[0]);
  constants.outputs = WriteRanks(dispatch, Ranks()[0]);
  SetDims(parts_[0].kept, constants.kept, constants.kept_rank);
  AddKeeping(std::move(dispatch), Source::kElements, constants);
  builder_.NextPass();
  return true;
}

bool TopKSlice::RankResults(bool has_cut) {
  if (lane_keeps_) return false;
  const Layout walk = WalkOf(parts_[0]);
  const tuning::RankWorth& worth = VectorElements() == 2   ? tuning::kWideRankWorth
                                   : walk == Layout::kRows ? tuning::kRankWorth
                                                           : tuning::kFarRankWorth;
  const bool software = !builder_.options().prefers_wide_rows;
  const uint64_t most = !software ? worth.hardware
                        : has_cut ? worth.beside_cuts
                                  : worth.beside_sorts;
  const bool few = software && length_ <= worth.few_pairs / sequences_ / length_;
  if (!few && length_ > most * k_ / length_) return false;
  if (!FitsWhole()) return false;
  uint64_t slots = length_;
  if (walk == Layout::kRows) {
    // A row that starts within a vector has slots before it.
    const uint64_t vector = VectorElements();
    slots += vector - CommonAlignment(parts_[0], &parts_[0].reduced[0], vector);
  }
  AddRanking(nullptr, slots, {{"IS_SELECTED", 0}, {"LAYOUT", static_cast<uint32_t>(walk)}});
  return true;
}

void TopKSlice::RankSelection(const Selection& selection) {
  AddRanking(&selection, MostTaken(k_), {{"IS_SELECTED", 1}});
}

void TopKSlice::AddRanking(const Selection* selection, uint64_t slots,
                           const std::vector<ShaderMacro>& macros) {
  const PlanOptions& options = builder_.options();
  std::vector<ShaderMacro> all = Macros(true);
  all.insert(all.end(), macros.begin(), macros.end());
  const uint64_t side_by_side = std::min<uint64_t>(sequences_, options.threads);
  const uint64_t blocks = CeilDiv(slots, TOP_K_RANKED_SLOTS);
  Dispatch dispatch;
  dispatch.kernel = builder_.Kernel({"top_k_rank", "RankElements", std::move(all)});
  TopKRankConstants constants = {};
  constants.part = ReadPart(dispatch, parts_[0]);
  constants.outputs = WriteRanks(dispatch, Ranks()[0]);
  SetDims(parts_[0].kept, constants.kept, constants.kept_rank);
  constants.sequences = static_cast<uint32_t>(sequences_);
  constants.k = static_cast<uint32_t>(k_);
  constants.side_by_side = static_cast<uint32_t>(side_by_side);
  constants.slot_blocks = static_cast<uint32_t>(blocks);
  if (selection != nullptr) {
    dispatch.reads[1] = selection->view;
    constants.candidate_stride = static_cast<uint32_t>(selection->candidates.sequence_stride);
    constants.taken_stride = static_cast<uint32_t>(selection->taken.sequence_stride);
  }
  dispatch.constants = constants;
  const uint64_t units = RoundUp(sequences_, side_by_side) * blocks;
  DealUnits(dispatch, units, TurnsOf(units, slots, options), options.threads);
  builder_.Add(std::move(dispatch));
  builder_.NextPass();
}

void TopKSlice::WriteResults(const List& list) {
  const uint32_t kernel = builder_.Kernel({"top_k_write", "WriteResults", Macros(true)});
  for (const IterationSpace& ranks : Ranks()) {
    const uint64_t rank_count = ranks.index_count();
    for (const IterationSpace& part : parts_) {
      Dispatch dispatch;
      dispatch.kernel = kernel;
      dispatch.reads[1] = list.view;
      TopKWriteConstants constants = {};
      constants.part = ReadPart(dispatch, part);
      constants.outputs = WriteRanks(dispatch, ranks);
      SetDims(part.kept, constants.kept, constants.kept_rank);
      constants.first_rank = static_cast<uint32_t>(ranks.index_base);
      constants.rank_count = static_cast<uint32_t>(rank_count);
      constants.list_stride = static_cast<uint32_t>(list.sequence_stride);
      dispatch.constants = constants;
      SetUnitsInTurns(dispatch, sequences_ * rank_count, tuning::kMaxLaneResults);
      builder_.Add(std::move(dispatch));
    }
  }
  builder_.NextPass();
}

SequenceRecords TopKSlice::RecordsPerSequence(uint64_t length, uint64_t k, DataType type,
                                              uint64_t parts, const PlanOptions& options) {
  const uint64_t vector_elements = kVectorBytes / ElementBytes(type);
  // An upper bound for all layouts and all ways to process their lists.
  SequenceRecords most;
  const auto add = [&](uint64_t list, uint64_t all) {
    most.list = std::max(most.list, list);
    most.all = std::max(most.all, all);
  };
  // The blocks of every part may be rounded up, and so may a row of columns, which has two more
  // words for each.
  const uint64_t words = vector_elements == 2 ? 1 : 4;  // 64-bit elements are never read as columns
  const auto keys = [&](uint64_t block) {
    return words * (CeilDiv(length, block) + 2 * parts + TOP_K_KEY_STEP);
  };
  const auto runs = [&](uint64_t run) {
    return (CeilDiv(length, run) + std::min(parts, length) - 1) * std::min(run, k);
  };
  if (k <= tuning::kMaxLaneKeep) {
    for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
      const uint64_t block = KeepBlock(length, k, vector_elements, layout, options);
      const uint64_t list = block > 0 ? std::max(keys(block), k * block)
                                      : runs(std::min(length, LeastRun(k, options)));
      add(list, list);
    }
    if (!MayCutFew(length, k, options)) return most;
  }
  if (const uint64_t block = SelectBlock(length, k, vector_elements); block > 0) {
    // The taken candidates, spread, and twice in runs; and the sorted k.
    const uint64_t candidates = MostCandidates(length, k, block);
    const uint64_t list = std::max({keys(block), candidates, MostTaken(k)});
    add(list, std::max(list, candidates + 4 * MostTaken(k) + k));
  } else {
    add(runs(tuning::kMaxLaneKeep), 2 * runs(tuning::kMaxLaneKeep));
  }
  return most;
}

}  // namespace top_k

absl::Status PlanTopK(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const TopKDesc desc = TopKDesc::From(operator_desc);
  const PlanOptions& options = builder.options();
  FillGaps(builder, BufferRole::Output(), *desc.output_values);
  FillGaps(builder, BufferRole::Output(1), *desc.output_indices);
  builder.NextPass();
  IterationSpace space = MakeIterationSpace(desc.input, {desc.axis}, *desc.output_values,
                                            &*desc.output_indices, ReducedOrder::kRowMajor);
  // Ranks have their own output strides; see Ranks.
  for (SpaceDim& dim : space.reduced) dim.output_stride = dim.index_stride = 0;

  const DataType type = desc.input.data_type;
  const uint64_t length = desc.input.sizes[desc.axis];
  SliceLimits limits = LimitsFor(type, type, options);
  // Repeated halving leaves parts of at least a quarter of the limit.
  const uint64_t parts = CeilDiv(InputSpan(space.reduced) + 1, limits.input_elements / 4);
  const top_k::SequenceRecords records =
      top_k::TopKSlice::RecordsPerSequence(length, desc.k, type, parts, options);
  if (records.list > options.max_view_elements) {
    return absl::ResourceExhaustedError(
        absl::StrCat("top_k with k (", desc.k, ") of ", length, " elements sorts ", records.list,
                     " candidates at once; the limit is ", options.max_view_elements, "."));
  }
  limits.index_elements = LimitsFor(type, desc.output_indices->data_type, options).output_elements;
  const uint64_t slice_records =
      desc.k <= tuning::kMaxLaneKeep ? tuning::kMaxListRecords : tuning::kMaxSortedRecords;
  limits.results = std::max<uint64_t>(
      1, std::min(options.max_view_elements / records.list, slice_records / records.all));
  for (const IterationSpace& slice : SliceKept(space, limits)) {
    if (builder.full()) break;
    // Slices run one after another, so they may share scratch.
    const uint64_t mark = builder.Mark();
    top_k::TopKSlice(builder, desc, slice, limits).Plan();
    builder.Release(mark);
  }
  return absl::OkStatus();
}

}  // namespace opmill
