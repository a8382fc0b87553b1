#include "tests/fuzz/plan_bounds.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace opmill {
namespace {

// As the shaders number them.
constexpr uint64_t kAligned = 0, kShifted = 1, kScalar = 2, kRecord = 3;
constexpr uint64_t kRows = 0, kColumns = 1;
constexpr uint32_t kMostTileVectors = 32;
constexpr uint64_t kMostPlaces = 4096;
constexpr uint64_t kElements = 0, kRecords = 1, kKeys = 2, kBlocks = 3;
constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
uint64_t RoundUp(uint64_t a, uint64_t b) { return CeilDiv(a, b) * b; }

// One dispatch. The first mistake counts.
class Checker {
 public:
  Checker(const OperatorPlan& plan, const Dispatch& dispatch)
      : kernel_(plan.kernels[dispatch.kernel]), dispatch_(dispatch), c_(dispatch.constants) {
    type_ = static_cast<DataType>(Macro("DATA_TYPE"));
    threads_ = Macro("THREADS");
    vector_ = 16 / std::max(1u, ElementBytes(type_));
    wide_ = vector_ == 2;
  }

  std::string Run() {
    Demand(dispatch_.groups[0] >= 1 && dispatch_.groups[0] <= 65535 && dispatch_.groups[1] >= 1 &&
               dispatch_.groups[1] <= 65535,
           "has groups past Direct3D's limit");
    Demand(c_.group_columns == dispatch_.groups[0], "has other group_columns than groups");
    Demand(groups() * threads_ <= kMost, "counts lanes past 32 bits");
    if (kernel_.entry == "ReduceRows") {
      Macro("LOAD") == kRecord ? Combine() : ReduceRows();
    } else if (kernel_.entry == "ReduceColumns" || kernel_.entry == "ReduceTiles") {
      ReduceColumns();
    } else if (kernel_.entry == "ScatterOnes") {
      ScatterOnes();
    } else if (kernel_.entry == "BestOfBlocks") {
      BestOfBlocks();
    } else if (kernel_.entry == "KeepBest") {
      KeepBest();
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
    return mistake_;
  }

  // Elements of the first output that it writes, or of parts of a result that it looks at.
  uint64_t written() const { return written_; }

 private:
  void Demand(bool holds, absl::string_view what) {
    if (!holds && mistake_.empty()) mistake_ = absl::StrCat(kernel_.entry, " ", what);
  }

  void Within(uint64_t index, const BufferView& view, absl::string_view what) {
    if (index < view.element_count && index <= kMost) return;
    Demand(false,
           absl::StrCat("goes to ", index, " of ", what, ", which has ", view.element_count));
  }

  uint64_t Macro(absl::string_view name, bool required = true) {
    for (const ShaderMacro& macro : kernel_.macros) {
      if (macro.name == name) return macro.value;
    }
    Demand(!required, absl::StrCat("lacks the macro ", name));
    return 0;
  }

  uint64_t groups() const { return uint64_t{dispatch_.groups[0]} * dispatch_.groups[1]; }
  const BufferView& read(size_t slot) const { return dispatch_.reads[slot]; }
  const BufferView& write(size_t slot) const { return dispatch_.writes[slot]; }
  void NeedGroups(uint64_t count) {
    Demand(groups() >= count, absl::StrCat("has ", groups(), " groups of ", count));
  }

  absl::Span<const Dim> kept() const { return {c_.kept, c_.kept_rank}; }
  absl::Span<const Dim> reduced() const { return {c_.reduced, c_.reduced_rank}; }

  static uint64_t Product(absl::Span<const Dim> dims) {
    uint64_t product = 1;
    for (const Dim& dim : dims) product *= dim.size;
    return product;
  }

  // How far positions of the dimensions reach.
  static uint64_t Span(absl::Span<const Dim> dims, uint Dim::*stride) {
    uint64_t span = 0;
    for (const Dim& dim : dims) span += uint64_t{dim.size - 1} * dim.*stride;
    return span;
  }

  // Positions are numbered row by row; of more than there are the outermost dimension makes too
  // large an offset.
  void NeedPositions(absl::Span<const Dim> dims, uint64_t count, absl::string_view what) {
    if (Product(dims) == count) return;
    Demand(false,
           absl::StrCat("walks ", count, " ", what, ", and its dimensions have ", Product(dims)));
  }

  // What every first element of a walk is a multiple of, within a vector.
  uint64_t Alignment() const {
    uint64_t alignment = std::gcd(uint64_t{c_.input_base}, vector_);
    for (const auto dims : {kept(), reduced()}) {
      for (const Dim& dim : dims) {
        if (dim.size > 1) alignment = std::gcd(alignment, uint64_t{dim.input_stride});
      }
    }
    return alignment;
  }

  // Of the input, whose elements stand in vectors.
  void ReadsElement(uint64_t element) {
    Demand(element <= kMost, "reads elements past 32 bits");
    Within(element / vector_, read(0), "the input's vectors");
  }

  void Splits() {
    Demand(uint64_t{c_.splits} * c_.split_items >= c_.item_count &&
               uint64_t{c_.splits - 1} * c_.split_items < c_.item_count,
           "splits its items into others than it has");
  }

  void StoresResults(uint64_t results, uint64_t output_span) {
    if (Macro("RESULT") == 0) {
      Demand(c_.splits == 1, "writes an output of which it knows a part");
      Within(c_.output_base + output_span, write(0), "the output");
      written_ = results;
    } else {
      Within(c_.record_base + (results - 1) * c_.record_stride +
                 uint64_t{c_.splits - 1} * c_.split_stride,
             write(0), "the records");
    }
  }

  void CheckLanes() {
    const uint64_t lanes = uint64_t{1} << c_.lane_bits;
    Demand(lanes <= threads_, "shares a result among more lanes than a group has");
    Demand(Macro("SHARE") == (lanes > 1 ? 1 : 0), "shares without SHARE");
  }

  // A walk over runs may have no other dimension; every other one has a step, if of nothing.
  void CheckDims(bool walks_runs) {
    const uint64_t dims = std::max<uint64_t>(c_.reduced_rank, walks_runs ? 0 : 1);
    Demand(Macro("DIMS") == std::min<uint64_t>(dims, 2), "has other dimensions");
    Demand(c_.reduced_rank > 0 || c_.reduced[0].input_stride == 0,
           "steps where nothing is reduced");
    Demand(c_.zero == 0, "has a zero that is none");
  }

  void ReduceRows() {
    const uint64_t load = Macro("LOAD");
    CheckLanes();
    Splits();
    NeedPositions(kept(), c_.unit_count, "results");
    CheckDims(load != kScalar);
    const uint64_t run_length = load == kScalar ? 1 : c_.run_length;
    const uint64_t run_vectors = load == kScalar ? 1 : c_.run_vectors;
    Demand(run_length > 0 && run_vectors > 0, "has empty runs");
    if (!mistake_.empty()) return;
    NeedPositions(reduced(), c_.item_count / run_vectors, "runs");
    Demand(c_.item_count % run_vectors == 0, "ends inside a run");
    Demand(c_.index_count == Product(reduced()) * run_length, "has another index_count");
    const uint64_t farthest =
        c_.input_base + Span(kept(), &Dim::input_stride) + Span(reduced(), &Dim::input_stride);
    ReadsElement(farthest + run_length - 1);
    if (load == kAligned) {
      Demand(Alignment() == vector_ && run_length % vector_ == 0, "is aligned and is not");
      Demand(run_vectors * vector_ == run_length, "has other vectors than its run");
    } else if (load == kShifted) {
      Demand(run_vectors * vector_ >= run_length + vector_ - Alignment(), "leaves out elements");
      Demand(uint64_t{c_.last_vector} + 1 == read(0).element_count, "has another last vector");
    }
    const uint64_t lanes = uint64_t{1} << c_.lane_bits;
    NeedGroups(CeilDiv(c_.unit_count, threads_ / lanes) * c_.splits);
    StoresResults(c_.unit_count, Span(kept(), &Dim::output_stride));
  }

  void Combine() {
    CheckLanes();
    Splits();
    NeedPositions(kept(), c_.unit_count, "results");
    Within(c_.input_base + uint64_t{c_.unit_count - 1} * c_.read_stride +
               uint64_t{c_.item_count - 1} * c_.read_item_stride,
           read(0), "the records");
    NeedGroups(CeilDiv(c_.unit_count, threads_ >> c_.lane_bits) * c_.splits);
    StoresResults(c_.unit_count, Span(kept(), &Dim::output_stride));
  }

  void ReduceColumns() {
    const uint64_t load = Macro("LOAD");
    const uint64_t slots = load == kScalar ? 1 : vector_;
    CheckLanes();
    Splits();
    Demand(c_.column_units == CeilDiv(c_.columns, slots), "has other units than columns");
    if (!mistake_.empty() || c_.column_units == 0) return;
    const uint64_t outer = c_.unit_count / c_.column_units;
    Demand(outer * c_.column_units == c_.unit_count, "ends inside a row");
    NeedPositions(kept(), outer, "rows of results");
    NeedPositions(reduced(), c_.item_count, "items");
    CheckDims(false);
    Demand(Macro("WIDTH") == (load == kScalar || wide_ ? 1 : 4), "folds another number of columns");
    const uint64_t farthest =
        c_.input_base + Span(kept(), &Dim::input_stride) + Span(reduced(), &Dim::input_stride);
    if (load == kScalar) {
      ReadsElement(farthest + uint64_t{c_.columns - 1} * c_.column_input_stride);
    } else {
      Demand(c_.column_input_stride == 1, "reads columns that are no neighbours");
      ReadsElement(farthest + c_.columns - 1);
      if (load == kAligned) Demand(Alignment() == vector_, "is aligned and is not");
      if (load == kShifted) {
        Demand(uint64_t{c_.last_vector} + 1 == read(0).element_count, "has another last vector");
      }
    }
    NeedGroups(ColumnGroups(outer) * c_.splits);
    StoresResults(outer * c_.columns, Span(kept(), &Dim::output_stride) +
                                          uint64_t{c_.columns - 1} * c_.column_output_stride);
  }

  // Of one split.
  uint64_t ColumnGroups(uint64_t outer) {
    if (kernel_.entry == "ReduceColumns") return CeilDiv(c_.unit_count, threads_ >> c_.lane_bits);
    Demand(c_.tile_vectors >= 1 && c_.tile_vectors <= kMostTileVectors,
           "has tiles of another size than its kernel");
    Demand(c_.lane_bits == 0, "shares tiles");
    return outer * CeilDiv(c_.column_units, uint64_t{std::max(1u, c_.tile_vectors)} * threads_);
  }

  void ScatterOnes() {
    NeedPositions(kept(), c_.unit_count, "results");
    NeedPositions(reduced(), c_.index_count, "positions");
    Within(c_.input_base + uint64_t{c_.unit_count} - 1, read(0), "the records");
    Within(
        c_.output_base + Span(kept(), &Dim::output_stride) + Span(reduced(), &Dim::output_stride),
        write(0), "the output");
    NeedGroups(CeilDiv(c_.unit_count, threads_));
    written_ = uint64_t{c_.unit_count} * c_.index_count;
  }

  // --- top_k ---

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

  // Elements of rows before the first of a sequence, in its vector, at most.
  uint64_t MostBefore() const {
    for (const Dim& dim : kept()) {
      if (dim.size > 1 && dim.input_stride % vector_ != 0) return vector_ - 1;
    }
    return c_.input_base % vector_;
  }

  // Blocks of a part reach over its sequences.
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
      const uint64_t tile = Macro("TILE");
      const uint64_t sets = std::max<uint64_t>(1, vector_ / 4);
      CoversSequences(0);
      Demand(Alignment() == vector_ && c_.reduced[0].input_stride % vector_ == 0,
             "takes rows that start inside vectors");
      Demand(c_.column_units > 0 && c_.runs > 0, "has no columns");
      Demand(uint64_t{c_.unit_count} == outer * c_.block_count * c_.runs, "has other units");
      ReadsElement(c_.input_base + Span(kept(), &Dim::input_stride) +
                   Span(reduced(), &Dim::input_stride) + uint64_t{c_.column_units} * vector_ - 1);
      // The tiles of the row's lanes.
      const uint64_t full = c_.runs / threads_ * threads_ * tile * c_.splits;
      const uint64_t rest =
          c_.runs % threads_ == 0 ? 0 : c_.runs % threads_ + threads_ * (tile * c_.splits - 1);
      Demand(full + rest >= c_.column_units, "leaves out columns");
      const uint64_t last =
          (c_.record_base +
           ((outer - 1) * c_.record_stride + c_.block_count - 1) * uint64_t{c_.split_stride} +
           c_.column_units - 1) *
              sets +
          sets - 1;
      Within(last, write(0), "the keys");
      Within(2 * last + 1, write(1), "the runners");
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

  // Keys of `count` blocks of every sequence, as top_k_block_keys.hlsli finds them.
  void ReadsKeys(uint64_t count, uint64_t layout) {
    const uint64_t last_block = RoundUp(count, key_step()) - 1;
    uint64_t base = 0;
    if (layout == kColumns) {
      Demand(c_.columns > 0 && c_.sequences % c_.columns == 0, "has other columns");
      if (!mistake_.empty()) return;
      base = uint64_t{c_.sequences / c_.columns - 1} * c_.key_stride +
             RoundUp(c_.columns, vector_) - 1;
    } else {
      base = uint64_t{c_.sequences - 1} * c_.key_stride;
      if (layout == kRows) {
        Demand(c_.key_stride % key_step() == 0 && c_.key_item_stride == 1, "cuts vectors of keys");
      }
    }
    const uint64_t last = base + last_block * c_.key_item_stride;
    Demand(last <= kMost, "counts keys past 32 bits");
    Within(last / key_step(), read(1), "the keys");
  }

  void UsesHeaders() {
    Within(uint64_t{c_.sequences} * TOP_K_HEADER_WORDS - 1, write(1), "the headers");
  }

  void KeepBest() {
    const uint64_t source = Macro("SOURCE");
    const uint64_t layout = Macro("LAYOUT");
    Demand(c_.sequences > 0 && c_.item_count > 0 && c_.list_length > 0, "has nothing to keep");
    Demand(Macro("KEEP") >= c_.k && Macro("KEEP") <= 16, "keeps less than it writes");
    if (!mistake_.empty()) return;
    const uint64_t runs = CeilDiv(c_.list_length, c_.item_count);
    const uint64_t last_sequence = uint64_t{c_.sequences} - 1;
    Demand(uint64_t{c_.unit_count} == runs * c_.sequences, "has other runs");
    NeedGroups(CeilDiv(c_.unit_count, threads_));
    Within(c_.record_base + last_sequence * c_.record_stride + (runs - 1) * c_.k + c_.k - 1,
           write(0), "the records");
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
      UsesHeaders();
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
      const uint64_t winners =
          std::max<uint64_t>(c_.runs, CeilDiv(c_.list_length, c_.block_length));
      Within(last_sequence * c_.read_stride + winners - 1, read(1), "the winners");
      if (layout != kColumns) return;
      const uint64_t last_key =
          uint64_t{c_.sequences / std::max(1u, c_.columns) - 1} * c_.key_stride +
          RoundUp(c_.columns, vector_) - 1 +
          (uint64_t{c_.block_base} + c_.block_count - 1) * c_.key_item_stride;
      Within(last_key / 4 * 8 + 7, write(1), "the runners");
    } else {
      Demand(false, "has no known source");
    }
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
    Within(c_.record_base + (sequences - 1) * c_.record_stride + last_written, write(0),
           "the merged runs");
    Demand(c_.splits > 0, "takes no chunks");
    NeedGroups(CeilDiv(c_.unit_count, threads_ * std::max(1u, c_.splits)));
    if (c_.counted != 0) {
      Within(sequences * TOP_K_HEADER_WORDS - 1, write(1), "the headers");
    }
  }

  void WriteResults() {
    ReadsSequences();
    Demand(c_.item_count > 0, "writes no ranks");
    if (!mistake_.empty()) return;
    const uint64_t sequences = c_.unit_count / c_.item_count;
    Demand(sequences * c_.item_count == c_.unit_count, "ends inside a sequence");
    NeedPositions(kept(), sequences, "sequences");
    const uint64_t last_rank = uint64_t{c_.item_count} - 1;
    Within((sequences - 1) * c_.read_stride + c_.rank_base + last_rank, read(1), "the list");
    Within(c_.output_base + Span(kept(), &Dim::output_stride) +
               last_rank * c_.reduced[0].output_stride,
           write(0), "the values");
    Within(
        c_.output2_base + Span(kept(), &Dim::index_stride) + last_rank * c_.reduced[0].index_stride,
        write(1), "the indices");
    NeedGroups(CeilDiv(c_.unit_count, threads_ * std::max(1u, c_.splits)));
    written_ = uint64_t{c_.unit_count} * c_.index_count;
  }

  void Select() {
    const uint64_t layout = Macro("LAYOUT");
    Demand(c_.sequences > 0, "has no sequences");
    if (!mistake_.empty()) return;
    UsesHeaders();
    if (kernel_.entry == "FindCut") {
      ReadsKeys(c_.list_length, layout);
      Demand(c_.k <= c_.runs && c_.list_length >= c_.k, "wants more blocks than there are");
      NeedGroups(c_.sequences);
    } else if (kernel_.entry == "TakeBest") {
      Within(uint64_t{c_.sequences} * c_.read_stride - 1, read(0), "the candidates");
      Within(uint64_t{c_.sequences} * c_.record_stride - 1, write(0), "what it takes");
      Demand(c_.runs <= c_.record_stride && c_.k <= c_.runs, "takes more than it may");
      NeedGroups(c_.sequences);
    } else {
      const uint64_t before = layout == kRows ? MostBefore() : 0;
      NeedPositions(kept(), c_.sequences, "sequences");
      ReadsSequences();
      CoversSequences(before);
      ReadsKeys(uint64_t{c_.block_base} + c_.block_count, layout);
      Within(uint64_t{c_.sequences} * c_.record_stride - 1, write(0), "the candidates");
      Demand(c_.splits > 0 && c_.split_items > 0, "has no windows");
      if (!mistake_.empty()) return;
      const uint64_t window = layout != kRows ? 32 : wide_ ? 64 : 128;
      Demand(uint64_t{c_.splits} * threads_ * c_.split_items * window >= c_.index_count + before,
             "leaves out windows");
      if (c_.item_count > 0) {
        Demand(c_.block_length == window << c_.lane_bits, "has other windows in a block");
      }
      NeedGroups(uint64_t{c_.sequences} * c_.splits);
    }
  }

  void SpreadCandidates() {
    Demand(c_.sequences > 0, "has no sequences");
    if (!mistake_.empty()) return;
    UsesHeaders();
    Within(uint64_t{c_.sequences} * c_.candidate_stride - 1, read(1), "the candidates");
    Within(c_.input_base + uint64_t{c_.sequences} * c_.read_stride - 1, read(1), "what was taken");
    Demand(c_.read_stride <= c_.record_stride, "spreads more than it has room for");
    Within(uint64_t{c_.sequences} * c_.record_stride - 1, write(0), "what it spreads");
    Demand(c_.lane_bits >= 1 && (uint64_t{1} << c_.lane_bits) <= kMostPlaces, "has other places");
    Demand(c_.index_count <= uint64_t{1} << 31, "has positions past its places");
    NeedGroups(c_.sequences);
  }

  void RankCandidates() {
    Demand(c_.item_count > 0 && c_.k > 0 && c_.splits > 0, "ranks nothing");
    if (!mistake_.empty()) return;
    const uint64_t sequences = c_.unit_count / c_.item_count;
    Demand(sequences * c_.item_count == c_.unit_count, "ends inside a sequence");
    Demand(c_.item_count <= c_.read_stride && c_.k <= c_.record_stride, "goes into its neighbours");
    Within(sequences * c_.read_stride - 1, read(1), "the candidates");
    Within(sequences * c_.record_stride - 1, write(0), "the ranks");
    Within(sequences * TOP_K_HEADER_WORDS - 1, write(1), "the headers");
    NeedGroups(CeilDiv(c_.unit_count, threads_ * c_.splits));
  }

  const KernelPermutation& kernel_;
  const Dispatch& dispatch_;
  const DispatchConstants& c_;
  DataType type_ = DataType::kUnknown;
  uint64_t threads_ = 0;
  uint64_t vector_ = 0;
  bool wide_ = false;
  uint64_t written_ = 0;
  std::string mistake_;
};

uint64_t BytesOf(const OperatorPlan& plan, BufferRole role) {
  switch (role) {
    case BufferRole::kInput:
      return plan.input_bytes;
    case BufferRole::kScratch:
      return plan.scratch_bytes;
    case BufferRole::kOutput0:
      return plan.output_bytes[0];
    case BufferRole::kOutput1:
      return plan.output_bytes.size() > 1 ? plan.output_bytes[1] : 0;
  }
  return 0;
}

std::string FindViewMistake(const OperatorPlan& plan, const PlanOptions& options,
                            const BufferView& view, bool writes) {
  if (view.element_count == 0) return "";
  const uint64_t end = view.offset_bytes + view.element_count * ViewElementBytes(view.format);
  // Vectors read may reach past the last element, not past its vector.
  const uint64_t bytes = BytesOf(plan, view.role);
  const uint64_t limit = writes && view.format != ViewFormat::kVector ? bytes : RoundUp(bytes, 16);
  if (view.offset_bytes % 16 != 0) return "a view starts inside a vector";
  if (view.element_count > options.max_view_elements) return "a view has too many elements";
  if (end > limit) {
    return absl::StrCat("a view of buffer ", static_cast<int>(view.role), " ends at byte ", end,
                        " of ", bytes);
  }
  if (writes && view.role == BufferRole::kInput) return "a view writes the input";
  return "";
}

// So many looks at positions of results, all dispatches together.
uint64_t WorkOf(const OperatorDesc& desc) {
  const uint64_t elements = ElementCount(InputOf(desc));
  if (std::holds_alternative<HardmaxDesc>(desc)) return elements;
  if (const auto* top_k = std::get_if<TopKDesc>(&desc)) return elements * top_k->k;
  return ElementCount(OutputsOf(desc)[0]);
}

}  // namespace

std::string FindPlanMistake(const OperatorDesc& validated, const PlanOptions& options,
                            const OperatorPlan& plan) {
  if (plan.input_bytes != RequiredBytes(InputOf(validated))) return "another input_bytes";
  const std::vector<TensorDesc> outputs = OutputsOf(validated);
  if (plan.output_bytes.size() != outputs.size()) return "another count of outputs";
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (plan.output_bytes[i] != RequiredBytes(outputs[i])) return "another output_bytes";
  }
  if (plan.scratch_bytes > options.max_scratch_bytes) return "too much scratch";
  uint64_t written = 0;
  for (size_t p = 0; p < plan.passes.size(); ++p) {
    for (const Fill& fill : plan.passes[p].fills) {
      if (fill.offset_bytes % 4 != 0 || fill.size_bytes % 4 != 0 ||
          fill.offset_bytes + fill.size_bytes > BytesOf(plan, fill.role)) {
        return absl::StrCat("pass ", p, " fills past the end of a buffer");
      }
    }
    for (size_t d = 0; d < plan.passes[p].dispatches.size(); ++d) {
      const Dispatch& dispatch = plan.passes[p].dispatches[d];
      if (dispatch.kernel >= plan.kernels.size()) return "a kernel that the plan does not have";
      std::string mistake;
      for (const BufferView& view : dispatch.reads) {
        if (mistake.empty()) mistake = FindViewMistake(plan, options, view, false);
      }
      for (const BufferView& view : dispatch.writes) {
        if (mistake.empty()) mistake = FindViewMistake(plan, options, view, true);
      }
      Checker checker(plan, dispatch);
      if (mistake.empty()) mistake = checker.Run();
      if (!mistake.empty()) return absl::StrCat("pass ", p, " dispatch ", d, ": ", mistake);
      written += checker.written();
    }
  }
  if (written == WorkOf(validated)) return "";
  return absl::StrCat("the dispatches see to ", written, " of ", WorkOf(validated), " results");
}

}  // namespace opmill
