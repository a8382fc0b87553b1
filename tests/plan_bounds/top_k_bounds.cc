#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "shaders/top_k_constants.h"
#include "tests/plan_bounds/dispatch_checker.h"

namespace opmill {
namespace {

// Counts as written both results and elements of the input that are read.
class TopKChecker final : public DispatchChecker {
 public:
  TopKChecker(const OperatorPlan& plan, const Dispatch& dispatch, uint32_t k)
      : DispatchChecker(plan, dispatch), k_(k) {}

 private:
  void CheckKernel() override {
    Demand(threads_ > 0, "has no lanes");
    if (!mistake_.empty()) return;
    if (kernel_.entry == "SortSequences") {
      SortSequences();
    } else if (kernel_.entry == "GatherRows") {
      GatherRows();
    } else if (kernel_.entry == "SelectBest" || kernel_.entry == "WalkChunks") {
      SelectChunks();
    } else if (kernel_.entry == "CountDigits" || kernel_.entry == "ScatterItems") {
      RadixPass();
    } else if (kernel_.entry == "ScanCounts") {
      ScanCounts();
    } else {
      Demand(false, "is of no known kernel");
    }
  }

  uint64_t capacity() const { return wide_ ? TOP_K_WIDE_CAPACITY : TOP_K_NARROW_CAPACITY; }
  bool reads_elements() { return Macro("SOURCE") == SOURCE_ELEMENTS; }
  bool reads_input() const { return read(0).role == BufferRole::Input(); }

  void NeedRecords(const BufferView& view) {
    Demand(view.format == (wide_ ? ViewFormat::kVector : ViewFormat::kUint32x2),
           "has records in another format than its kernel");
  }

  // A group for each unit.
  void NeedUnits(uint64_t count) {
    Demand(groups_.unit_count == count, "has other units");
    NeedGroups(count);
  }

  void StoresRanks(const TopKOutputs& outputs, absl::Span<const Dim> kept, uint64_t sequences,
                   uint64_t ranks) {
    NeedPositions(kept, sequences, "sequences");
    Demand(ranks > 0, "writes no ranks");
    if (!mistake_.empty()) return;
    Within(
        outputs.values_base + Span(kept, &Dim::output_stride) + (ranks - 1) * outputs.value_stride,
        write(0), "the values");
    Within(
        outputs.indices_base + Span(kept, &Dim::index_stride) + (ranks - 1) * outputs.index_stride,
        write(1), "the indices");
    Demand(write(1).format == (Macro("RESULT") == RESULT_WIDE_INDICES ? ViewFormat::kUint32x2
                                                                      : ViewFormat::kUint32),
           "has indices of another width");
    written_ += sequences * ranks;
  }

  // The items of every sequence that the view has.
  void ReadsItems(const TopKItems& items, absl::Span<const Dim> kept, uint64_t sequences) {
    Demand(items.length > 0, "has empty sequences");
    if (!mistake_.empty()) return;
    if (reads_elements()) {
      NeedPositions(kept, sequences, "sequences");
      ReadsElement(items.base + Span(kept, &Dim::input_stride) +
                   uint64_t{items.length - 1} * items.stride);
      Demand(uint64_t{items.first_position} + items.length <= kMost, "has positions past 32 bits");
    } else {
      NeedRecords(read(0));
      Within(items.base + (sequences - 1) * items.stride + items.length - 1, read(0),
             "the records");
    }
  }

  void SortSequences() {
    const auto c = Constants<TopKSortConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    const uint64_t sequences = groups_.unit_count;
    Demand(c.length > 0 && sequences > 0, "has nothing to sort");
    Demand(c.row_bits < 32 && c.item_bits < 32, "has no room");
    if (!mistake_.empty()) return;
    Demand(c.length <= uint64_t{1} << c.item_bits, "has more elements than slots");
    Demand(uint64_t{1} << (c.row_bits + c.item_bits) <= capacity() &&
               uint64_t{1} << c.row_bits <= TOP_K_MOST_ROWS,
           "has more slots than memory");
    Demand(c.ranks.k == k_ && uint64_t{c.ranks.first} + c.ranks.count <= k_ && k_ <= c.length,
           "has other ranks");
    NeedGroups(CeilDiv(sequences, uint64_t{1} << c.row_bits));
    ReadsElement(c.input_base + Span(kept, &Dim::input_stride) +
                 uint64_t{c.length - 1} * c.element_stride);
    StoresRanks(c.outputs, kept, sequences, c.ranks.count);
    if (c.ranks.first == 0) written_ += sequences * c.length;
  }

  void GatherRows() {
    const auto c = Constants<TopKGatherConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    Demand(c.length > 0 && c.sequences > 0, "gathers nothing");
    if (!mistake_.empty()) return;
    NeedPositions(kept, c.sequences, "sequences");
    Demand(c.row_bits < 32 && 1u << c.row_bits <= TOP_K_TILE_ROWS, "has more rows than memory");
    if (!mistake_.empty()) return;
    const uint64_t rows = uint64_t{1} << c.row_bits;
    Demand(c.row_tiles == CeilDiv(c.length, TOP_K_TILE / rows), "has other tiles in a row");
    NeedUnits(CeilDiv(c.sequences, rows) * c.row_tiles);
    Demand(c.sequences == 1 || c.length <= c.row_stride, "has rows that overlap");
    ReadsElement(c.input_base + Span(kept, &Dim::input_stride) +
                 uint64_t{c.length - 1} * c.element_stride);
    Demand(ViewElementBytes(write(0).format) * vector_ == 16, "writes elements of another width");
    Within(c.row_base + uint64_t{c.sequences - 1} * c.row_stride + c.length - 1, write(0),
           "the rows");
    written_ += uint64_t{c.sequences} * c.length;
  }

  // The items of the last chunk.
  template <typename Constants>
  uint64_t LastChunk(const Constants& c) {
    const uint64_t before = uint64_t{c.chunks - 1} * c.chunk_length;
    Demand(before < c.items.length && before + c.chunk_length >= c.items.length,
           "has other chunks than its items need");
    return c.items.length - before;
  }

  // The elements that WalkChunks selects may be apart.
  void SelectChunks() {
    const auto c = Constants<TopKChunkConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    Demand(c.chunks > 0 && c.chunk_length > 0 && c.ranks.k == k_, "selects nothing");
    if (!mistake_.empty()) return;
    const uint64_t sequences = groups_.unit_count / c.chunks;
    Demand(sequences > 0, "has no sequences");
    const bool walks = kernel_.entry == "WalkChunks";
    Demand(groups_.unit_count == sequences * c.chunks, "has other units");
    NeedGroups(CeilDiv(sequences * c.chunks, walks ? threads_ : 1));
    ReadsItems(c.items, kept, sequences);
    if (!mistake_.empty()) return;
    const uint64_t last_items = LastChunk(c);
    if (walks) {
      Demand(k_ <= Macro("BEST_COUNT") && Macro("BEST_COUNT") <= TOP_K_MOST_WALKED,
             "keeps fewer than k items, or more than registers hold");
      Demand(c.chunk_length < 1u << 16 || c.items.length < 1u << 16, "has indices past 16 bits");
    } else {
      HoldsChunks(c, kept);
    }
    StoresBest(c, kept, sequences, last_items);
  }

  void NeedAdjacent(const TopKItems& items) {
    Demand(!reads_elements() || items.length == 1 || items.stride == 1,
           "has elements that are apart");
  }

  // Each sum over the lanes is of teams of equal size.
  void NeedTeams() {
    Demand(threads_ >= 32 && std::has_single_bit(threads_), "has lanes that teams do not share");
  }

  void HoldsChunks(const TopKChunkConstants& c, absl::Span<const Dim> kept) {
    const bool of_elements = reads_elements();
    NeedAdjacent(c.items);
    const uint64_t vector_items = of_elements ? vector_ : (wide_ ? 2 : 4);
    const auto is_aligned = [&](uint64_t offset) { return offset % vector_items == 0; };
    const bool aligned =
        !of_elements ||
        (is_aligned(c.items.base) && is_aligned(c.chunk_length) &&
         std::ranges::all_of(kept, [&](const Dim& dim) { return is_aligned(dim.input_stride); }));
    Demand(std::min(c.chunk_length, c.items.length) + (aligned ? 0 : vector_items - 1) <=
               threads_ * TOP_K_LANE_VECTORS * vector_items,
           "has chunks that registers do not hold");
    Demand(threads_ % 32 == 0 && (wide_ ? 2 : 4) * threads_ == 1u << Macro("DIGIT_BITS"),
           "has other threads than its histograms");
    Demand(k_ <= c.most && std::has_single_bit(c.most) && c.most * (wide_ ? 2 : 1) <= 4 * threads_,
           "leaves more than a group sorts");
    Demand((Macro("MANY") != 0) ==
               (c.most > std::min<uint64_t>(TOP_K_FEW, (wide_ ? 1 : 2) * threads_)),
           "ranks candidates by another method than its kernel");
    Demand(c.leaders == 0 || c.leaders == threads_ || (!wide_ && c.leaders == 4 * threads_),
           "has other leaders than lanes or vectors");
  }

  void StoresBest(const TopKChunkConstants& c, absl::Span<const Dim> kept, uint64_t sequences,
                  uint64_t last_items) {
    const bool is_first = reads_elements() && reads_input();
    if (Macro("RESULT") == RESULT_RECORDS) {
      Demand(c.chunks == 1 || k_ <= c.chunk_length, "leaves gaps between records");
      NeedRecords(write(0));
      const uint64_t records = uint64_t{c.chunks - 1} * k_ + std::min<uint64_t>(k_, last_items);
      Demand(sequences == 1 || c.first_record + records <= c.record_stride,
             "writes into the list of the next sequence");
      Within(c.first_record + (sequences - 1) * c.record_stride + records - 1, write(0),
             "the records");
      if (is_first) written_ += sequences * c.items.length;
      return;
    }
    Demand(c.chunks == 1, "writes results of a part of a sequence");
    Demand(
        c.ranks.count > 0 && uint64_t{c.ranks.first} + c.ranks.count <= k_ && k_ <= c.items.length,
        "has other ranks");
    StoresRanks(c.outputs, kept, sequences, c.ranks.count);
    if (is_first && c.ranks.first == 0) written_ += sequences * c.items.length;
  }

  void RadixPass() {
    const auto c = Constants<TopKChunkConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    Demand(c.chunks > 0 && c.chunk_length > 0 && groups_.unit_count >= c.chunks, "sorts nothing");
    if (!mistake_.empty()) return;
    const uint64_t sequences = groups_.unit_count / c.chunks;
    NeedUnits(sequences * c.chunks);
    ReadsItems(c.items, kept, sequences);
    NeedAdjacent(c.items);
    NeedTeams();
    LastChunk(c);
    Demand(uint64_t{c.first_chunk} + c.chunks <= c.all_chunks, "has more chunks than counts");
    Demand(c.shift % 8 == 0 && c.shift < 128 / vector_, "has no such digit");
    const uint64_t digits = sequences * TOP_K_DIGITS;
    const bool counts = kernel_.entry == "CountDigits";
    const BufferView& view = counts ? write(0) : read(1);
    Demand(view.format == ViewFormat::kUint32, "has counts in another format than its kernel");
    Within(digits * (uint64_t{c.all_chunks} + 1) - 1, view, "the counts");
    if (counts) {
      const bool is_first = Macro("SOURCE") == SOURCE_ELEMENTS && reads_input() && c.shift == 0;
      if (is_first) written_ += sequences * c.items.length;
      return;
    }
    Demand(c.ranks.count > 0, "writes nothing");
    if (Macro("RESULT") != RESULT_RECORDS) {
      Demand(uint64_t{c.ranks.first} + c.ranks.count <= k_, "has other ranks");
      // All parts of the sequences write the same results.
      const uint64_t before = written_;
      StoresRanks(c.outputs, kept, sequences, c.ranks.count);
      if (c.first_chunk > 0) written_ = before;
      return;
    }
    NeedRecords(write(0));
    Demand(sequences == 1 || (c.ranks.first == 0 && c.ranks.count <= c.record_stride),
           "writes into the list of the next sequence");
    Within(c.first_record + (sequences - 1) * c.record_stride + c.ranks.count - 1, write(0),
           "the records");
  }

  void ScanCounts() {
    const auto c = Constants<TopKScanConstants>();
    Demand(groups_.unit_count > 0 && groups_.unit_count % TOP_K_DIGITS == 0 && c.all_chunks > 0,
           "has no counts");
    NeedUnits(groups_.unit_count);
    NeedTeams();
    Demand(write(0).format == ViewFormat::kUint32, "has counts in another format than its kernel");
    Within(uint64_t{groups_.unit_count} * (uint64_t{c.all_chunks} + 1) - 1, write(0), "the counts");
  }

  const uint32_t k_;
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeTopKChecker(const OperatorPlan& plan, const Dispatch& dispatch,
                                                 uint32_t k) {
  return std::make_unique<TopKChecker>(plan, dispatch, k);
}

}  // namespace opmill
