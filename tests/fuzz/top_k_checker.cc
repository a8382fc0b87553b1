#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>

#include "tests/fuzz/dispatch_checker.h"

namespace opmill {
namespace {

// The shaders' values.
constexpr uint64_t kRows = 0, kColumns = 1;
constexpr uint64_t kElements = 0, kRecords = 1, kKeys = 2, kBlocks = 3;
constexpr uint64_t kRankedSlots = 16;
constexpr uint64_t kMostPlaces = 4096;
constexpr uint64_t kMostTileSets = 64;

class TopKChecker final : public DispatchChecker {
 public:
  using DispatchChecker::DispatchChecker;

 private:
  void CheckKernel() override {
    if (kernel_.entry == "BestOfBlocks") {
      BestOfBlocks();
    } else if (kernel_.entry == "KeepBest") {
      KeepBest();
    } else if (kernel_.entry == "RankElements") {
      RankElements();
    } else if (kernel_.entry == "MergeRuns") {
      MergeRuns();
    } else if (kernel_.entry == "WriteResults") {
      WriteResults();
    } else if (kernel_.entry == "FindCut" || kernel_.entry == "TakeBest" ||
               kernel_.entry == "CollectAbove") {
      Select();
    } else if (kernel_.entry == "SpreadCandidates") {
      SpreadCandidates();
    } else if (kernel_.entry == "RankCandidates") {
      RankCandidates();
    } else {
      Demand(false, "is of no known kernel");
    }
  }

  uint64_t key_step() const { return wide_ ? 2 : 4; }

  void OneAxis() {
    Demand(c_.reduced_rank <= 1, "walks sequences of several dimensions");
    NeedPositions(reduced(), c_.index_count, "elements of a sequence");
  }

  // All elements of all sequences of the part.
  void ReadsSequences() {
    OneAxis();
    ReadsElement(c_.input_base + Span(kept(), &Dim::input_stride) +
                 Span(reduced(), &Dim::input_stride));
  }

  // The most elements before the start of a sequence in its vector.
  uint64_t MostBefore() const {
    bool is_same_everywhere = true;
    uint64_t alignment = std::gcd(uint64_t{c_.input_base}, vector_);
    for (const Dim& dim : kept()) {
      if (dim.size == 1 || dim.input_stride % vector_ == 0) continue;
      is_same_everywhere = false;
      alignment = std::gcd(alignment, uint64_t{dim.input_stride});
    }
    return is_same_everywhere ? c_.input_base % vector_ : vector_ - alignment;
  }

  // The blocks of a part cover its sequences.
  void CoversSequences(uint64_t before) {
    Demand(uint64_t{c_.block_count} * c_.block_length >= c_.index_count + before,
           "leaves elements out of its blocks");
  }

  void BestOfBlocks() {
    const uint64_t layout = Macro("LAYOUT");
    ReadsSequences();
    Demand(c_.block_length > 0 && c_.block_count > 0 && c_.sequences > 0, "has no blocks");
    if (!mistake_.empty()) return;
    const uint64_t last_sequence = uint64_t{c_.sequences} - 1;
    if (layout == kRows) {
      const uint64_t team = Macro("TEAM");
      NeedPositions(kept(), c_.sequences, "sequences");
      Demand(c_.reduced_rank == 0 || c_.reduced[0].input_stride == 1, "takes strides for rows");
      Demand(team > 0 && threads_ % team == 0 && c_.block_length % vector_ == 0,
             "cuts blocks or groups");
      if (!mistake_.empty()) return;
      CoversSequences(MostBefore());
      Demand(uint64_t{c_.runs} * c_.splits * team >= c_.block_count, "leaves out blocks");
      Demand(uint64_t{c_.unit_count} == uint64_t{c_.sequences} * c_.runs, "has other units");
      Within(c_.record_base + last_sequence * c_.record_stride + c_.block_count - 1, write(0),
             "the keys");
      NeedGroups(CeilDiv(c_.unit_count, threads_ / team));
    } else if (layout == kColumns) {
      const uint64_t outer = Product(kept());
      const uint64_t sets = std::max<uint64_t>(1, vector_ / 4);
      CoversSequences(0);
      Demand(Alignment() == vector_ && c_.reduced[0].input_stride % vector_ == 0,
             "takes rows that start inside vectors");
      Demand(c_.column_units > 0 && c_.runs > 0, "has no columns");
      Demand(uint64_t{c_.unit_count} == outer * c_.block_count * c_.runs, "has other units");
      ReadsElement(c_.input_base + Span(kept(), &Dim::input_stride) +
                   Span(reduced(), &Dim::input_stride) + uint64_t{c_.column_units} * vector_ - 1);
      Demand(Macro("TILED") != 0
                 ? c_.lane_units > 1 && c_.lane_units * sets <= kMostTileSets && c_.tile_rows > 0 &&
                       c_.tile_rows % 4 == 0 && c_.runs % threads_ == 0
                 : c_.lane_units == 1 && c_.runs == c_.column_units,
             "has tiles of another size than its kernel");
      Demand(uint64_t{c_.runs} * c_.lane_units >= c_.column_units, "leaves out columns");
      const uint64_t last =
          (c_.record_base +
           ((outer - 1) * c_.record_stride + c_.block_count - 1) * uint64_t{c_.split_stride} +
           c_.column_units - 1) *
              sets +
          sets - 1;
      Within(last, write(0), "the keys");
      if (Macro("RUNNERS") != 0) Within(2 * last + 1, write(1), "the runners");
      NeedGroups(CeilDiv(c_.unit_count, threads_));
    } else {
      NeedPositions(kept(), c_.sequences, "sequences");
      CoversSequences(0);
      Demand(uint64_t{c_.unit_count} == uint64_t{c_.sequences} * c_.block_count, "has other units");
      Within(c_.record_base + uint64_t{c_.block_count - 1} * c_.split_stride + last_sequence,
             write(0), "the keys");
      NeedGroups(CeilDiv(c_.unit_count, threads_));
    }
  }

  // The largest position of the key of block 0 of a sequence; the words of columns are in any order
  // within their vector.
  uint64_t LastKeyBase(uint64_t layout) {
    if (layout != kColumns) return uint64_t{c_.sequences - 1} * c_.key_stride;
    return uint64_t{c_.sequences / std::max(1u, c_.columns) - 1} * c_.key_stride +
           RoundUp(c_.columns, vector_) - 1;
  }

  // Keys of `count` blocks of every sequence, as top_k_block_keys.hlsli finds them.
  void ReadsKeys(uint64_t count, uint64_t layout) {
    const uint64_t last_block = RoundUp(count, key_step()) - 1;
    if (layout == kColumns) {
      Demand(c_.columns > 0 && c_.sequences % c_.columns == 0, "has other columns");
      if (!mistake_.empty()) return;
    } else if (layout == kRows) {
      Demand(c_.key_stride % key_step() == 0 && c_.key_item_stride == 1, "cuts vectors of keys");
    }
    const uint64_t last = LastKeyBase(layout) + last_block * c_.key_item_stride;
    Demand(last <= kMost, "counts keys past 32 bits");
    Within(last / key_step(), read(1), "the keys");
  }

  // The most candidates that a selection of k elements keeps.
  uint64_t Taken() const { return uint64_t{c_.k} + c_.k / 2; }

  uint64_t QuadRecords(uint64_t candidates) const {
    return CeilDiv(candidates, 4) * (wide_ ? 3 : 2);
  }

  // The size of this many candidates in a selection's list.
  uint64_t ListRecords(uint64_t candidates) {
    return Macro("ALONE") != 0 ? QuadRecords(candidates) : candidates;
  }

  // Headers, candidates, and taken candidates.
  void ReadsSelection() {
    Within(
        c_.sequences * (TOP_K_HEADER_WORDS / 4 + uint64_t{c_.candidate_stride} + c_.read_stride) -
            1,
        read(1), "the selection");
  }

  // Of lists of a selection.
  void WithinLists(absl::string_view what) {
    const uint64_t record = uint64_t{c_.sequences} * c_.record_stride - 1;
    if (Macro("ALONE") == 0) return WithinWritten(record, what);
    Demand(write(0).format == ViewFormat::kUint32, "writes quads in another format than words");
    Within(4 * record + 3, write(0), what);
  }

  void UsesHeaders(uint64_t sequences) {
    Within(sequences * TOP_K_HEADER_WORDS - 1, write(1), "the headers");
  }

  // Lanes process several units, one after another.
  void NeedGroupsInTurns() { NeedGroups(CeilDiv(c_.unit_count, GroupUnits())); }

  void KeepBest() {
    const uint64_t source = Macro("SOURCE");
    const uint64_t layout = Macro("LAYOUT");
    Demand(c_.sequences > 0 && c_.item_count > 0 && c_.list_length > 0, "has nothing to keep");
    Demand(Macro("KEEP") >= c_.k && Macro("KEEP") <= 32, "keeps less than it writes");
    if (!mistake_.empty()) return;
    const uint64_t runs = CeilDiv(c_.list_length, c_.item_count);
    const uint64_t last_sequence = uint64_t{c_.sequences} - 1;
    Demand(uint64_t{c_.unit_count} == runs * c_.sequences, "has other runs");
    Demand(c_.lane_units == 1 || source == kElements,
           "takes another number of turns than its kernel");
    NeedGroupsInTurns();
    if (Macro("WRITES_RESULTS") != 0) {
      Demand(source == kElements && runs == 1 && c_.k <= c_.list_length && c_.index_base == 0,
             "writes results of a part of a sequence");
      StoresRanks(c_.sequences, c_.k);
    } else {
      WithinWritten(
          c_.record_base + last_sequence * c_.record_stride + (runs - 1) * c_.k + c_.k - 1,
          "the records");
    }
    if (source == kElements) {
      NeedPositions(kept(), c_.sequences, "sequences");
      ReadsSequences();
      Demand(c_.list_length == c_.index_count, "walks others than its elements");
      if (layout == kRows) {
        Demand(c_.reduced_rank == 0 || c_.reduced[0].input_stride == 1, "takes strides for rows");
      }
    } else if (source == kRecords) {
      Within(c_.input_base + last_sequence * c_.read_stride +
                 uint64_t{c_.list_length - 1} * c_.read_item_stride,
             read(1), "the list");
      if (c_.counted == 0) return;
      UsesHeaders(c_.sequences);
      Within(last_sequence * c_.candidate_stride + c_.list_length - 1, read(0), "the candidates");
    } else if (source == kKeys) {
      Demand(c_.item_count % key_step() == 0, "cuts steps of keys");
      ReadsKeys(c_.list_length, layout);
    } else if (source == kBlocks) {
      NeedPositions(kept(), c_.sequences, "sequences");
      ReadsSequences();
      CoversSequences(layout == kRows ? MostBefore() : 0);
      Demand(c_.runs > 0 && c_.block_length > 0, "has no winners");
      if (!mistake_.empty()) return;
      Demand(c_.block_length % c_.item_count == 0 || c_.item_count % c_.block_length == 0,
             "has runs that begin inside a block and go on into the next");
      Demand(c_.item_count / c_.block_length <= 32,
             "has more blocks in a run than it has bits for");
      const uint64_t winners =
          std::max<uint64_t>(c_.runs, CeilDiv(c_.list_length, c_.block_length));
      Within(last_sequence * c_.read_stride + winners - 1, read(1), "the winners");
      if (layout != kColumns) return;
      const uint64_t last_key =
          LastKeyBase(layout) + (uint64_t{c_.block_base} + c_.block_count - 1) * c_.key_item_stride;
      Within(last_key / 4 * 8 + 7, write(1), "the runners");
    } else {
      Demand(false, "has no known source");
    }
  }

  void RankElements() {
    Demand(c_.sequences > 0 && c_.runs > 0 && c_.block_count > 0, "ranks nothing");
    if (!mistake_.empty()) return;
    Demand(c_.k > 0 && c_.k <= c_.index_count && c_.index_base == 0, "ranks a part of a sequence");
    NeedPositions(kept(), c_.sequences, "sequences");
    ReadsSequences();
    uint64_t slots = 0;
    if (Macro("IS_SELECTED") != 0) {
      ReadsSelection();
      slots = Taken();
      Demand(QuadRecords(slots) <= c_.read_stride, "reads more than is taken");
    } else {
      const bool rows = Macro("LAYOUT") == kRows;
      Demand(!rows || c_.reduced_rank == 0 || c_.reduced[0].input_stride == 1,
             "takes strides for rows");
      Demand(c_.list_length == c_.index_count, "ranks others than its elements");
      slots = c_.list_length + (rows ? MostBefore() : 0);
    }
    Demand(uint64_t{c_.block_count} * kRankedSlots >= slots, "leaves elements out of its blocks");
    Demand(uint64_t{c_.unit_count} == RoundUp(c_.sequences, c_.runs) * c_.block_count,
           "has other units");
    NeedGroupsInTurns();
    StoresRanks(c_.sequences, c_.k);
  }

  void MergeRuns() {
    Demand(c_.runs > 0 && c_.k > 0 && c_.split_items > 0 && c_.item_count > 0, "merges nothing");
    if (!mistake_.empty()) return;
    const uint64_t chunks = CeilDiv(c_.k, 32);
    const uint64_t sequences = c_.unit_count / (chunks * c_.runs);
    Demand(sequences > 0 && sequences * chunks * c_.runs == c_.unit_count, "has other units");
    if (!mistake_.empty()) return;
    const uint64_t read_runs = CeilDiv(c_.list_length, c_.split_items);
    Demand(uint64_t{c_.runs} == CeilDiv(read_runs, 2), "leaves out runs");
    const auto run_length = [&](uint64_t run) {
      const uint64_t first = run * c_.split_items;
      if (first >= c_.list_length) return uint64_t{0};
      return std::min<uint64_t>({c_.list_length - first, c_.split_items, c_.item_count});
    };
    const uint64_t last_read = (read_runs - 1) * c_.item_count + run_length(read_runs - 1) - 1;
    Within(c_.input_base + (sequences - 1) * c_.read_stride +
               std::max(last_read, read_runs < 2 ? 0
                                                 : (read_runs - 2) * c_.item_count +
                                                       run_length(read_runs - 2) - 1),
           read(1), "the runs");
    const uint64_t last_merged = std::min<uint64_t>(
        c_.k, run_length(2 * (uint64_t{c_.runs} - 1)) + run_length(2 * uint64_t{c_.runs} - 1));
    uint64_t last_written = (uint64_t{c_.runs} - 1) * c_.k + last_merged - 1;
    WithinWritten(c_.record_base + (sequences - 1) * c_.record_stride + last_written,
                  "the merged runs");
    NeedGroupsInTurns();
    if (c_.counted != 0) UsesHeaders(sequences);
  }

  void WriteResults() {
    ReadsSequences();
    Demand(c_.item_count > 0, "writes no ranks");
    if (!mistake_.empty()) return;
    const uint64_t sequences = c_.unit_count / c_.item_count;
    Demand(sequences * c_.item_count == c_.unit_count, "ends inside a sequence");
    NeedPositions(kept(), sequences, "sequences");
    Within((sequences - 1) * c_.read_stride + c_.rank_base + c_.item_count - 1, read(1),
           "the list");
    NeedGroupsInTurns();
    StoresRanks(sequences, c_.item_count);
  }

  void StoresRanks(uint64_t sequences, uint64_t ranks) {
    Within(c_.output_base + Span(kept(), &Dim::output_stride) +
               (ranks - 1) * c_.reduced[0].output_stride,
           write(0), "the values");
    Within(c_.output2_base + Span(kept(), &Dim::index_stride) +
               (ranks - 1) * c_.reduced[0].index_stride,
           write(1), "the indices");
    written_ = sequences * ranks * c_.index_count;
  }

  // A lane or a group for each sequence.
  void NeedSearches() {
    NeedGroups(Macro("ALONE") != 0 ? CeilDiv(c_.sequences, threads_) : c_.sequences);
  }

  void Select() {
    const uint64_t layout = Macro("LAYOUT");
    Demand(c_.sequences > 0, "has no sequences");
    if (!mistake_.empty()) return;
    UsesHeaders(c_.sequences);
    if (kernel_.entry == "FindCut") {
      ReadsKeys(c_.list_length, layout);
      Demand(c_.k <= c_.runs && c_.runs <= c_.k + c_.k / 8,
             "takes other blocks than there is room for");
      NeedSearches();
    } else if (kernel_.entry == "TakeBest") {
      Within(uint64_t{c_.sequences} * c_.read_stride - 1, read(0), "the candidates");
      WithinLists("what it takes");
      Demand(ListRecords(c_.runs) <= c_.record_stride && c_.k <= c_.runs, "takes more than it may");
      Demand(c_.runs == Taken(), "leaves more or fewer than are sorted");
      NeedSearches();
    } else {
      const uint64_t before = layout == kRows ? MostBefore() : 0;
      NeedPositions(kept(), c_.sequences, "sequences");
      ReadsSequences();
      CoversSequences(before);
      ReadsKeys(uint64_t{c_.block_base} + c_.block_count, layout);
      WithinLists("the candidates");
      Demand(
          c_.record_stride >= ListRecords(std::min<uint64_t>(
                                  c_.index_count, (c_.k + c_.k / 8) * uint64_t{c_.block_length})),
          "has no room for the elements of its blocks");
      Demand(c_.runs > 0 && c_.split_items > 0, "has no windows");
      if (!mistake_.empty()) return;
      const uint64_t window = layout != kRows ? 32 : wide_ ? 64 : 128;
      Demand(uint64_t{c_.runs} * c_.split_items * window >= c_.index_count + before,
             "leaves out windows");
      Demand((c_.read_stride == c_.split_items && c_.read_item_stride == 1) ||
                 (c_.read_stride == 1 && c_.read_item_stride == c_.runs),
             "takes windows twice");
      const bool alone = Macro("ALONE") != 0;
      Demand(!alone || c_.runs == 1, "leaves candidates in any order");
      if (alone && layout == kColumns) {
        uint64_t alignment = std::gcd(uint64_t{c_.input_base}, c_.reduced[0].input_stride);
        for (const Dim& dim : kept().first(kept().size() - 1)) {
          alignment = std::gcd(alignment, uint64_t{dim.input_stride});
        }
        Demand(alignment % vector_ == 0, "takes rows that start inside vectors");
        Demand(kept().back().size == c_.columns && kept().back().input_stride == 1,
               "takes other columns than its keys");
        if (!mistake_.empty()) return;
      }
      // A set of four columns, or a share of a sequence.
      const uint64_t units = alone && layout == kColumns
                                 ? c_.sequences / c_.columns * RoundUp(c_.columns, vector_) / 4
                                 : uint64_t{c_.sequences} * c_.runs;
      Demand(uint64_t{c_.unit_count} == units, "has other units");
      if (c_.item_count > 0) {
        Demand(c_.block_length == window << c_.lane_bits, "has other windows in a block");
      }
      NeedGroups(CeilDiv(c_.unit_count, threads_));
    }
  }

  void SpreadCandidates() {
    Demand(c_.sequences > 0, "has no sequences");
    if (!mistake_.empty()) return;
    UsesHeaders(c_.sequences);
    ReadsSelection();
    Demand(c_.read_stride <= c_.record_stride, "spreads more than it has room for");
    WithinWritten(uint64_t{c_.sequences} * c_.record_stride - 1, "what it spreads");
    Demand(c_.lane_bits >= 1 && (uint64_t{1} << c_.lane_bits) <= kMostPlaces, "has other places");
    Demand(c_.index_count <= uint64_t{1} << 31, "has positions past its places");
    NeedGroups(c_.sequences);
  }

  void RankCandidates() {
    Demand(c_.item_count > 0 && c_.k > 0, "ranks nothing");
    if (!mistake_.empty()) return;
    const uint64_t sequences = c_.unit_count / c_.item_count;
    Demand(sequences * c_.item_count == c_.unit_count, "ends inside a sequence");
    Demand(c_.item_count <= c_.read_stride && c_.k <= c_.record_stride, "goes into its neighbours");
    Within(sequences * c_.read_stride - 1, read(1), "the candidates");
    WithinWritten(sequences * c_.record_stride - 1, "the ranks");
    UsesHeaders(sequences);
    NeedGroupsInTurns();
  }
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeTopKChecker(const OperatorPlan& plan,
                                                 const Dispatch& dispatch) {
  return std::make_unique<TopKChecker>(plan, dispatch);
}

}  // namespace opmill
