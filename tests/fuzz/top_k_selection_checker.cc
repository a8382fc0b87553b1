#include <algorithm>
#include <cstdint>
#include <memory>

#include "tests/fuzz/top_k_checker.h"

namespace opmill {
namespace {

class TopKSelectionChecker final : public TopKChecker {
 public:
  TopKSelectionChecker(const OperatorPlan& plan, const Dispatch& dispatch, uint32_t k)
      : TopKChecker(plan, dispatch), k_(k) {}

 private:
  void CheckKernel() override {
    if (kernel_.entry == "FindCut" || kernel_.entry == "TakeBest") {
      Select();
    } else if (kernel_.entry == "CollectAbove") {
      CollectAbove();
    } else if (kernel_.entry == "SpreadCandidates" || kernel_.entry == "RankCandidates") {
      Spread();
    } else if (kernel_.entry == "RankElements") {
      RankElements();
    } else {
      Demand(false, "is of no known kernel");
    }
  }

  // A selection keeps so many at most.
  uint64_t Taken() const { return uint64_t{k_} + k_ / 2; }

  uint64_t QuadRecords(uint64_t candidates) const {
    return CeilDiv(candidates, 4) * TOP_K_QUAD_RECORDS(wide_);
  }

  // So many candidates as a list of a selection holds them.
  uint64_t ListRecords(uint64_t candidates) {
    return Macro("ALONE") != 0 ? QuadRecords(candidates) : candidates;
  }

  // Headers, candidates, and what was taken of these.
  void ReadsSelection(uint64_t sequences, uint64_t candidate_stride, uint64_t taken_stride) {
    Within(sequences * (TOP_K_HEADER_WORDS / 4 + candidate_stride + taken_stride) - 1, read(1),
           "the selection");
  }

  // Of lists of a selection.
  void WithinLists(uint64_t records, absl::string_view what) {
    if (Macro("ALONE") == 0) return WithinWritten(records - 1, what);
    Demand(write(0).format == ViewFormat::kUint32, "writes quads in another format than words");
    Within(4 * records - 1, write(0), what);
  }

  void Select() {
    const auto c = Constants<TopKSelectConstants>();
    Demand(c.sequences > 0, "has no sequences");
    Demand(c.k == k_, "takes another number of elements");
    if (!mistake_.empty()) return;
    UsesHeaders(c.sequences);
    // A lane or a group for each sequence.
    NeedGroups(Macro("ALONE") != 0 ? CeilDiv(c.sequences, threads_) : c.sequences);
    if (kernel_.entry == "FindCut") {
      ReadsKeys(c.keys, c.sequences, c.keys.length, Macro("LAYOUT"));
      Demand(c.k <= c.most && c.most <= c.k + c.k / 8, "takes other blocks than there is room for");
      return;
    }
    Within(uint64_t{c.sequences} * c.candidate_stride - 1, read(0), "the candidates");
    WithinLists(uint64_t{c.sequences} * c.taken_stride, "what it takes");
    Demand(ListRecords(c.most) <= c.taken_stride && c.k <= c.most, "takes more than it may");
    Demand(c.most == Taken(), "leaves more or fewer than are sorted");
  }

  void CollectAbove() {
    const auto c = Constants<TopKCollectConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    const uint64_t layout = Macro("LAYOUT");
    const bool is_rows = layout == LAYOUT_ROWS;
    Demand(c.sequences > 0, "has no sequences");
    if (!mistake_.empty()) return;
    UsesHeaders(c.sequences);
    const uint64_t before = is_rows ? MostBefore(c.part, kept) : 0;
    NeedPositions(kept, c.sequences, "sequences");
    ReadsSequences(c.part, kept);
    if (is_rows) NeedRows(c.part);
    CoversSequences(c, before);
    ReadsKeys(c.keys, c.sequences, uint64_t{c.first_block} + c.block_count, layout);
    WithinLists(uint64_t{c.sequences} * c.candidate_stride, "the candidates");
    Demand(c.candidate_stride >= ListRecords(std::min<uint64_t>(
                                     c.part.length, (uint64_t{k_} + k_ / 8) * c.block_length)),
           "has no room for the elements of its blocks");
    Demand(c.sequence_lanes > 0 && c.lane_windows > 0, "has no windows");
    if (!mistake_.empty()) return;
    const uint64_t window = TOP_K_WINDOW(is_rows, wide_);
    Demand(uint64_t{c.sequence_lanes} * c.lane_windows * window >= c.part.length + before,
           "leaves out windows");
    Demand((c.lane_stride == c.lane_windows && c.window_stride == 1) ||
               (c.lane_stride == 1 && c.window_stride == c.sequence_lanes),
           "takes windows twice");
    const bool alone = Macro("ALONE") != 0;
    Demand(!alone || c.sequence_lanes == 1, "leaves candidates in any order");
    const bool takes_sets = alone && layout == LAYOUT_COLUMNS;
    if (takes_sets) {
      Demand(!kept.empty() && kept.back().size == c.keys.columns && kept.back().input_stride == 1,
             "takes other columns than its keys");
      if (!mistake_.empty()) return;
      NeedColumns(c.part, kept.first(kept.size() - 1));
    }
    // A set of four columns, or a share of a sequence.
    const uint64_t units = takes_sets
                               ? c.sequences / c.keys.columns * RoundUp(c.keys.columns, vector_) / 4
                               : uint64_t{c.sequences} * c.sequence_lanes;
    Demand(uint64_t{groups_.unit_count} == units, "has other units");
    Demand(groups_.lane_units == 1, "takes another number of turns than its kernel");
    if (c.skips_blocks != 0) {
      Demand(c.block_length == window << c.block_window_bits, "has other windows in a block");
    }
    NeedGroups(CeilDiv(groups_.unit_count, threads_));
  }

  void Spread() {
    const auto c = Constants<TopKSpreadConstants>();
    Demand(c.sequences > 0 && c.spread_stride > 0, "has nothing to rank");
    Demand(c.k == k_ && c.k > 0, "takes another number of elements");
    if (!mistake_.empty()) return;
    UsesHeaders(c.sequences);
    const uint64_t spread = uint64_t{c.sequences} * c.spread_stride;
    if (kernel_.entry == "SpreadCandidates") {
      ReadsSelection(c.sequences, c.candidate_stride, c.taken_stride);
      Demand(c.taken_stride <= c.spread_stride, "spreads more than it has room for");
      WithinWritten(spread - 1, "what it spreads");
      Demand(c.place_bits >= 1 && (uint64_t{1} << c.place_bits) <= TOP_K_MOST_PLACES,
             "has other places");
      Demand(c.length <= uint64_t{1} << 31, "has positions past its places");
      NeedGroups(c.sequences);
      return;
    }
    Demand(groups_.unit_count == spread, "has other units");
    Within(spread - 1, read(1), "the candidates");
    WithinWritten(uint64_t{c.sequences} * c.k - 1, "the ranks");
    NeedGroupsInTurns();
  }

  void RankElements() {
    const auto c = Constants<TopKRankConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    Demand(c.sequences > 0 && c.side_by_side > 0 && c.slot_blocks > 0, "ranks nothing");
    if (!mistake_.empty()) return;
    Demand(c.k == k_ && c.k > 0 && c.k <= c.part.length && c.part.first_position == 0,
           "ranks a part of a sequence");
    NeedPositions(kept, c.sequences, "sequences");
    ReadsSequences(c.part, kept);
    uint64_t slots = 0;
    if (Macro("IS_SELECTED") != 0) {
      ReadsSelection(c.sequences, c.candidate_stride, c.taken_stride);
      slots = Taken();
      Demand(QuadRecords(slots) <= c.taken_stride, "reads more than is taken");
    } else {
      const bool rows = Macro("LAYOUT") == LAYOUT_ROWS;
      if (rows) NeedRows(c.part);
      slots = c.part.length + (rows ? MostBefore(c.part, kept) : 0);
    }
    Demand(uint64_t{c.slot_blocks} * TOP_K_RANKED_SLOTS >= slots,
           "leaves elements out of its blocks");
    Demand(uint64_t{groups_.unit_count} == RoundUp(c.sequences, c.side_by_side) * c.slot_blocks,
           "has other units");
    NeedGroupsInTurns();
    StoresRanks(c.outputs, c.part, kept, c.sequences, c.k);
  }

  const uint32_t k_;
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeTopKSelectionChecker(const OperatorPlan& plan,
                                                          const Dispatch& dispatch, uint32_t k) {
  return std::make_unique<TopKSelectionChecker>(plan, dispatch, k);
}

}  // namespace opmill
