#include "tests/fuzz/top_k_checker.h"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace opmill {
namespace {

class TopKListChecker final : public TopKChecker {
 public:
  using TopKChecker::TopKChecker;

 private:
  void CheckKernel() override {
    if (kernel_.entry == "BestOfBlocks") {
      BestOfBlocks();
    } else if (kernel_.entry == "KeepBest") {
      KeepBest();
    } else if (kernel_.entry == "MergeRuns") {
      MergeRuns();
    } else {
      Demand(kernel_.entry == "WriteResults", "is of no known kernel");
      WriteResults();
    }
  }

  void BestOfBlocks() {
    const auto c = Constants<TopKBlocksConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    const uint64_t layout = Macro("LAYOUT");
    ReadsSequences(c.part, kept);
    Demand(c.block_length > 0 && c.block_count > 0 && c.sequences > 0, "has no blocks");
    Demand(groups_.lane_units == 1, "takes another number of turns than its kernel");
    Demand(uint64_t{c.first_block} + c.block_count <= c.keys.length, "has more blocks than keys");
    if (!mistake_.empty()) return;
    const uint64_t last_block = uint64_t{c.first_block} + c.block_count - 1;
    const uint64_t last_key =
        uint64_t{c.sequences - 1} * c.keys.sequence_stride + last_block * c.keys.item_stride;
    if (layout == LAYOUT_ROWS) {
      const uint64_t team = Macro("TEAM");
      NeedPositions(kept, c.sequences, "sequences");
      NeedRows(c.part);
      Demand(team > 0 && threads_ % team == 0 && c.block_length % vector_ == 0,
             "cuts blocks or groups");
      Demand(c.keys.item_stride == 1, "scatters the keys of rows");
      if (!mistake_.empty()) return;
      CoversSequences(c, MostBefore(c.part, kept));
      Demand(uint64_t{c.sequence_teams} * c.team_turns * team >= c.block_count,
             "leaves out blocks");
      Demand(uint64_t{groups_.unit_count} == uint64_t{c.sequences} * c.sequence_teams,
             "has other units");
      Within(last_key, write(0), "the keys");
      NeedGroups(CeilDiv(groups_.unit_count, threads_ / team));
    } else if (layout == LAYOUT_COLUMNS) {
      const uint64_t outer = Product(kept);
      const uint64_t sets = std::max<uint64_t>(1, vector_ / 4);
      CoversSequences(c, 0);
      NeedColumns(c.part, kept);
      Demand(c.row_vectors > 0 && c.row_lanes > 0, "has no columns");
      Demand(outer * c.keys.columns == c.sequences &&
                 c.row_vectors == CeilDiv(c.keys.columns, vector_),
             "has other columns than its keys");
      Demand(uint64_t{groups_.unit_count} == outer * c.block_count * c.row_lanes,
             "has other units");
      ReadsSequences(c.part, kept, uint64_t{c.row_vectors} * vector_ - 1);
      Demand(Macro("TILED") != 0
                 ? c.tile_vectors > 1 && c.tile_vectors * sets <= TOP_K_TILE_SETS &&
                       c.tile_rows > 0 && c.tile_rows % 4 == 0 && c.row_lanes % threads_ == 0
                 : c.tile_vectors == 1 && c.row_lanes == c.row_vectors,
             "has tiles of another size than its kernel");
      Demand(uint64_t{c.row_lanes} * c.tile_vectors >= c.row_vectors, "leaves out columns");
      Demand(c.keys.item_stride == c.row_vectors * vector_ &&
                 (outer == 1 || c.keys.sequence_stride % vector_ == 0),
             "cuts vectors of keys");
      const uint64_t last_row =
          ((outer - 1) * c.keys.sequence_stride + last_block * c.keys.item_stride) / vector_;
      const uint64_t last = (last_row + c.row_vectors - 1) * sets + sets - 1;
      Within(last, write(0), "the keys");
      if (Macro("RUNNERS") != 0) Within(2 * last + 1, write(1), "the runners");
      NeedGroups(CeilDiv(groups_.unit_count, threads_));
    } else {
      NeedPositions(kept, c.sequences, "sequences");
      CoversSequences(c, 0);
      Demand(c.keys.sequence_stride == 1, "scatters the keys of sequences");
      Demand(uint64_t{groups_.unit_count} == uint64_t{c.sequences} * c.block_count,
             "has other units");
      Within(last_key, write(0), "the keys");
      NeedGroups(CeilDiv(groups_.unit_count, threads_));
    }
  }

  void KeepBest() {
    const auto c = Constants<TopKKeepConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    const uint64_t source = Macro("SOURCE");
    const uint64_t layout = Macro("LAYOUT");
    Demand(c.sequences > 0 && c.run_length > 0 && c.list_length > 0, "has nothing to keep");
    Demand(Macro("KEEP") >= c.kept_count && Macro("KEEP") <= TOP_K_MOST_KEPT,
           "keeps less than it writes");
    if (!mistake_.empty()) return;
    const uint64_t runs = CeilDiv(c.list_length, c.run_length);
    const uint64_t last_sequence = uint64_t{c.sequences} - 1;
    Demand(uint64_t{groups_.unit_count} == runs * c.sequences, "has other runs");
    Demand(groups_.lane_units == 1 || source == SOURCE_ELEMENTS,
           "takes another number of turns than its kernel");
    NeedGroupsInTurns();
    if (Macro("WRITES_RESULTS") != 0) {
      Demand(source == SOURCE_ELEMENTS && runs == 1 && c.kept_count <= c.list_length &&
                 c.part.first_position == 0,
             "writes results of a part of a sequence");
      StoresRanks(c.outputs, c.part, kept, c.sequences, c.kept_count);
    } else {
      WithinWritten(c.first_record + last_sequence * c.record_stride + runs * c.kept_count - 1,
                    "the records");
    }
    if (source == SOURCE_ELEMENTS) {
      NeedPositions(kept, c.sequences, "sequences");
      ReadsSequences(c.part, kept);
      Demand(c.list_length == c.part.length, "walks others than its elements");
      if (layout == LAYOUT_ROWS) NeedRows(c.part);
    } else if (source == SOURCE_RECORDS) {
      Within(last_sequence * c.list_stride + uint64_t{c.list_length - 1} * c.list_item_stride,
             read(1), "the list");
      if (c.counted == 0) return;
      UsesHeaders(c.sequences);
      Within(last_sequence * c.candidate_stride + c.list_length - 1, read(0), "the candidates");
    } else if (source == SOURCE_KEYS) {
      Demand(c.run_length % key_step() == 0, "cuts steps of keys");
      ReadsKeys(c.keys, c.sequences, c.list_length, layout);
    } else if (source == SOURCE_BLOCKS) {
      NeedPositions(kept, c.sequences, "sequences");
      ReadsSequences(c.part, kept);
      CoversSequences(c, layout == LAYOUT_ROWS ? MostBefore(c.part, kept) : 0);
      Demand(c.winners > 0 && c.block_length > 0, "has no winners");
      if (!mistake_.empty()) return;
      Demand(c.block_length % c.run_length == 0 || c.run_length % c.block_length == 0,
             "has runs that begin inside a block and go on into the next");
      Demand(c.run_length / c.block_length <= 32, "has more blocks in a run than it has bits for");
      const uint64_t winners =
          std::max<uint64_t>(c.winners, CeilDiv(c.list_length, c.block_length));
      Within(last_sequence * c.list_stride + winners - 1, read(1), "the winners");
      if (layout != LAYOUT_COLUMNS) return;
      const uint64_t last_key = LastKeyBase(c.keys, c.sequences, layout) +
                                (uint64_t{c.first_block} + c.block_count - 1) * c.keys.item_stride;
      Within(last_key / 4 * 8 + 7, write(1), "the runners");
    } else {
      Demand(false, "has no known source");
    }
  }

  void MergeRuns() {
    const auto c = Constants<TopKMergeConstants>();
    Demand(c.merged_count > 0 && c.merged_length > 0 && c.run_elements > 0 && c.run_length > 0,
           "merges nothing");
    if (!mistake_.empty()) return;
    const uint64_t chunks = CeilDiv(c.merged_length, TOP_K_MERGE_CHUNK);
    const uint64_t sequences = groups_.unit_count / (chunks * c.merged_count);
    Demand(sequences > 0 && sequences * chunks * c.merged_count == groups_.unit_count,
           "has other units");
    if (!mistake_.empty()) return;
    const uint64_t read_runs = CeilDiv(c.list_length, c.run_elements);
    Demand(uint64_t{c.merged_count} == CeilDiv(read_runs, 2), "leaves out runs");
    const auto run_length = [&](uint64_t run) {
      const uint64_t first = run * c.run_elements;
      if (first >= c.list_length) return uint64_t{0};
      return std::min<uint64_t>({c.list_length - first, c.run_elements, c.run_length});
    };
    const uint64_t last_read = (read_runs - 1) * c.run_length + run_length(read_runs - 1) - 1;
    Within((sequences - 1) * c.list_stride +
               std::max(last_read, read_runs < 2 ? 0
                                                 : (read_runs - 2) * c.run_length +
                                                       run_length(read_runs - 2) - 1),
           read(1), "the runs");
    const uint64_t last_run = 2 * (uint64_t{c.merged_count} - 1);
    const uint64_t last_merged =
        std::min<uint64_t>(c.merged_length, run_length(last_run) + run_length(last_run + 1));
    const uint64_t last_written =
        (uint64_t{c.merged_count} - 1) * c.merged_length + last_merged - 1;
    WithinWritten((sequences - 1) * c.record_stride + last_written, "the merged runs");
    NeedGroupsInTurns();
    if (c.counted != 0) UsesHeaders(sequences);
  }

  void WriteResults() {
    const auto c = Constants<TopKWriteConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    ReadsSequences(c.part, kept);
    Demand(c.rank_count > 0, "writes no ranks");
    if (!mistake_.empty()) return;
    const uint64_t sequences = groups_.unit_count / c.rank_count;
    Demand(sequences * c.rank_count == groups_.unit_count, "ends inside a sequence");
    NeedPositions(kept, sequences, "sequences");
    Within((sequences - 1) * c.list_stride + c.first_rank + c.rank_count - 1, read(1), "the list");
    NeedGroupsInTurns();
    StoresRanks(c.outputs, c.part, kept, sequences, c.rank_count);
  }
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeTopKChecker(const OperatorPlan& plan, const Dispatch& dispatch,
                                                 uint32_t k) {
  const std::string& shader = plan.kernels[dispatch.kernel].shader;
  if (shader == "top_k" || shader == "top_k_blocks" || shader == "top_k_merge" ||
      shader == "top_k_write") {
    return std::make_unique<TopKListChecker>(plan, dispatch);
  }
  return MakeTopKSelectionChecker(plan, dispatch, k);
}

}  // namespace opmill
