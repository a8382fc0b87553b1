// Plans top_k for one slice of sequences (top_k_plan.cc makes the slices). Long sequences are
// divided into blocks; only the blocks with the best keys can contain results. If k is small, a
// lane keeps the best candidates in registers. If k is large, a cut in the order of elements is
// searched, and the elements above it are collected. Candidates that single lanes have collected
// are ranked: each one counts the candidates before it. Other candidates are sorted: they are
// spread over places, or, if too many share a place, lanes sort short runs, which are then merged.
// In short sequences with a large k, every element is ranked.
#ifndef OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_SLICE_H_
#define OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_SLICE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/plan/iteration_space.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/tuning.h"
#include "shaders/top_k_constants.h"

namespace opmill::top_k {

// How a sequence lies in memory.
enum class Layout : uint32_t {
  kRows = LAYOUT_ROWS,
  kColumns = LAYOUT_COLUMNS,
  kStrided = LAYOUT_STRIDED,
};

// What KeepBest reads.
enum class Source : uint32_t {
  kElements = SOURCE_ELEMENTS,
  kRecords = SOURCE_RECORDS,
  kKeys = SOURCE_KEYS,
  kBlocks = SOURCE_BLOCKS,
};

// The best key of each block of each sequence.
struct Keys {
  BufferView view;
  BufferView runners;  // columns with lanes that keep: the second best key, and the best row
  Layout layout = Layout::kRows;
  uint64_t length = 0;  // keys per sequence, including those of empty blocks
  uint64_t stride = 0;  // keys from one sequence (columns: row of sequences) to the next
  uint64_t item_stride = 1;
  uint64_t columns = 1;                // columns: sequences in a row
  std::vector<uint64_t> part_lengths;  // of the length, by part

  TopKKeys constants() const {
    return {.sequence_stride = static_cast<uint32_t>(stride),
            .item_stride = static_cast<uint32_t>(item_stride),
            .columns = static_cast<uint32_t>(columns),
            .length = static_cast<uint32_t>(length)};
  }
};

// The candidates of each sequence of a slice, in records or quads: `length` per sequence, or as
// many as its header says if there are headers.
struct List {
  BufferView view;
  BufferView headers;
  uint64_t length = 0;
  uint64_t sequence_stride = 0;
  uint64_t item_stride = 1;
};

// The number of elements that a lane tests at once: WINDOW in top_k_collect.hlsl.
inline uint64_t Window(Layout layout, uint64_t vector_elements) {
  return TOP_K_WINDOW(layout == Layout::kRows, vector_elements == 2);
}

// Records of a sequence's header in a selection.
inline constexpr uint64_t kHeaderRecords = TOP_K_HEADER_WORDS / 4;

// The most blocks that are searched for k elements: slightly more than k, so that a cut is found
// early.
inline uint64_t MostBlocks(uint64_t k) { return k + k / 8; }

// The most candidates in these blocks: all of their elements. Usually there is little more than one
// per block.
inline uint64_t MostCandidates(uint64_t length, uint64_t k, uint64_t block) {
  return std::min(MostBlocks(k) * block, length);
}

// The most candidates that are sorted; of more, the best are taken first.
inline uint64_t MostTaken(uint64_t k) { return k + k / 2; }

// The records that one sequence needs in scratch at a time.
struct SequenceRecords {
  uint64_t list = 0;  // the longest list
  uint64_t all = 0;   // all lists of a sort
};

// The result of a selection: the candidates where they were found, or, if they exceed `taken`, the
// best of them in `taken`. Headers tell which. All are in one view, in this order: headers,
// candidates, taken.
struct Selection {
  bool alone = false;  // each lane had its own sequence; stored in quads
  BufferView view;
  List candidates;
  List taken;  // its headers apply to both lists
};

// Plans one slice of sequences, from its elements to its results.
class TopKSlice {
 public:
  TopKSlice(PlanBuilder& builder, const TopKDesc& desc, const IterationSpace& space,
            const SliceLimits& limits)
      : builder_(builder),
        desc_(desc),
        type_(desc.input.data_type),
        space_(space),
        parts_(SliceReduced(space, limits)),
        sequences_(space.results()),
        length_(space.index_count()),
        k_(desc.k),
        lane_keeps_(LaneKeeps()) {}

  void Plan();

  static SequenceRecords RecordsPerSequence(uint64_t length, uint64_t k, DataType type,
                                            uint64_t parts, const PlanOptions& options);

 private:
  bool LaneKeeps() const {
    return k_ <= tuning::kMaxLaneKeep &&
           !(MayCutFew(length_, k_, builder_.options()) && LayoutOf(parts_[0]) == Layout::kRows &&
             FitsWhole() && sequences_ >= builder_.options().parallel_lanes() / tuning::kLoneLanes);
  }
  // Whether a cut may be faster even though a lane could keep all k: for long rows, if there are
  // enough of them.
  static bool MayCutFew(uint64_t length, uint64_t k, const PlanOptions& options) {
    return k > tuning::kMaxRowKeep && length > tuning::kMinTournament && !options.prefers_wide_rows;
  }

  Layout LayoutOf(const IterationSpace& part) const;
  uint64_t VectorElements() const { return kVectorBytes / ElementBytes(type_); }

  std::vector<ShaderMacro> Macros(bool writes_results) const {
    std::vector<ShaderMacro> macros = {
        {"DATA_TYPE", static_cast<uint32_t>(type_)},
        {"THREADS", builder_.options().threads},
        {"LARGEST", desc_.axis_direction == AxisDirection::kDecreasing ? 1u : 0u},
        {"NAN_FIRST", 0},
        {"WRITES_RESULTS", writes_results ? 1u : 0u}};
    if (writes_results) {
      const bool wide = ElementBytes(desc_.output_indices->data_type) == 8;
      macros.push_back({"INDEX_WIDE", wide ? 1u : 0u});
    }
    return macros;
  }

  List NewList(uint64_t length) {
    const uint64_t count = sequences_ * length;
    return {.view = Records(builder_.ReserveRecords(count), count),
            .length = length,
            .sequence_stride = length};
  }

  // Lanes take several units, one after another, where lanes are few.
  void SetUnitsInTurns(Dispatch& dispatch, uint64_t units, uint64_t most_turns) {
    const PlanOptions& options = builder_.options();
    DealUnits(dispatch, units, options.turns(units, most_turns), options.threads);
  }

  Keys BlockKeys(uint64_t block);
  void AddBlockKeys(const IterationSpace& part, uint64_t block, uint64_t length, uint64_t base,
                    const Keys& keys);
  List KeepOfKeys(const Keys& keys);
  // The records of this many candidates in a selection's list: one per candidate, or quads
  // (top_k_quads.hlsli).
  uint64_t ListRecords(uint64_t candidates, bool alone) const {
    if (!alone) return candidates;
    return CeilDiv(candidates, 4) * TOP_K_QUAD_RECORDS(VectorElements() == 2);
  }
  Selection NewSelection(uint64_t block, bool alone);
  // Whether each lane selects from its own sequence: if that is faster, and views are large enough
  // to rank the candidates.
  bool SelectsAlone(const Keys& keys, uint64_t block) const;
  Selection SelectFromBlocks(const Keys& keys, uint64_t block);
  List KeepOfBlocks(const List& winners, const Keys& keys, uint64_t block);
  // How KeepBest reads the elements of a part.
  Layout WalkOf(const IterationSpace& part) const;
  KernelPermutation KeepKernel(Source source, Layout layout, uint64_t kept,
                               bool writes_results) const;
  // A dispatch that keeps the best of runs and writes them to `into`.
  Dispatch KeepDispatch(Source source, Layout layout, uint64_t kept, const List& into);
  // `kept` of each run of so many out of `length`, written from record `base` on.
  TopKKeepConstants Keeping(uint64_t length, uint64_t run, uint64_t kept, const List& into = {},
                            uint64_t base = 0) const;
  void AddKeeping(Dispatch dispatch, Source source, const TopKKeepConstants& constants);
  // Adds a view of the input's part to the dispatch, and returns where the part is.
  TopKPart ReadPart(Dispatch& dispatch, const IterationSpace& part) const;

  List SortElements();
  List SortList(List list);
  List SortSelection(const Selection& selection);
  // Sorts, by spreading, the sequences for which this works (their headers tell), into the list
  // that it returns. An empty list means that it works for none.
  List AddSpread(const Selection& selection);
  // The last merge writes into `last` unless it is empty.
  List MergeAll(List runs, uint64_t run_count, const List& last);
  // The ranks of a sequence as an iteration space, sliced where the views of the outputs end.
  std::vector<IterationSpace> Ranks() const;
  // Adds views of the outputs for these ranks to the dispatch, and returns where they are.
  TopKOutputs WriteRanks(Dispatch& dispatch, const IterationSpace& ranks) const;
  // Whether one dispatch goes from whole sequences to the outputs: views are large enough for it.
  bool FitsWhole() const { return parts_.size() == 1 && Ranks().size() == 1; }
  // One pass from the elements to the results: where a lane walks a whole sequence, or where every
  // element's rank is counted. False where that does not serve.
  bool KeepResults();
  bool RankResults(bool has_cut);
  void RankSelection(const Selection& selection);
  // Ranks so many slots of each sequence.
  void AddRanking(const Selection* selection, uint64_t slots,
                  const std::vector<ShaderMacro>& macros);
  void WriteResults(const List& list);

  // The fewest candidates that a lane sorts at once, if there are that many.
  static uint64_t LeastRun(uint64_t k, const PlanOptions& options) {
    return std::max(4 * k, options.prefers_wide_rows ? 0 : tuning::kMinLaneCandidates);
  }
  // The number of candidates of a list of `length` that one lane sorts at once.
  uint64_t RunLength(uint64_t length) const;

  // Sorts runs of `source`, or of the elements of one part, and writes the first `kept` of each to
  // `into` from record `base` on.
  void AddSortRuns(const List* source, const IterationSpace* part, uint64_t length, uint64_t run,
                   uint64_t kept, const List& into, uint64_t base);

  PlanBuilder& builder_;
  const TopKDesc& desc_;
  const DataType type_;
  const IterationSpace& space_;
  const std::vector<IterationSpace> parts_;  // of each sequence
  const uint64_t sequences_;
  const uint64_t length_;
  const uint64_t k_;
  const bool lane_keeps_;  // lanes keep all k, so no merge follows
};

}  // namespace opmill::top_k

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_SLICE_H_
