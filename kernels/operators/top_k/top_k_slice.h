// How top_k plans one slice of sequences (top_k_plan.cc walks the slices). Long sequences are cut
// into blocks, of which only those with the best keys can hold what is wanted. For few ranks a lane
// keeps the best in registers; for many, a cut in the order of elements is searched and those above
// it are collected. Where lanes collect alone, each of these is ranked by counting who comes before
// it. Otherwise they are sorted: by places over which they are spread, or, where too many meet in
// one, in short runs by lanes, which are then merged. In short sequences of which many are wanted
// every element is ranked.
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

// The best key of every block of every sequence.
struct Keys {
  BufferView view;
  BufferView runners;  // columns, lanes that keep: the second best key and the row of the best
  Layout layout = Layout::kRows;
  uint64_t length = 0;  // keys of a sequence, those of blocks without elements included
  uint64_t stride = 0;  // keys from a sequence (columns: from a row of sequences) to the next
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

// Candidates of every sequence of a slice, `length` each, in records or quads; as many as the
// headers say where there are some.
struct List {
  BufferView view;
  BufferView headers;
  uint64_t length = 0;
  uint64_t sequence_stride = 0;
  uint64_t item_stride = 1;
};

// Elements that a lane tests at a time.
inline uint64_t Window(Layout layout, uint64_t vector_elements) {
  return TOP_K_WINDOW(layout == Layout::kRows, vector_elements == 2);
}

// Records of a sequence's header in a selection.
inline constexpr uint64_t kHeaderRecords = TOP_K_HEADER_WORDS / 4;

// Blocks that may be searched for k elements: a few more than k, so that a cut is found early.
inline uint64_t MostBlocks(uint64_t k) { return k + k / 8; }

// Every element of these blocks may be a candidate; as a rule little more than one in each is.
inline uint64_t MostCandidates(uint64_t length, uint64_t k, uint64_t block) {
  return std::min(MostBlocks(k) * block, length);
}

// Candidates that may be left to sort: of more, some are taken.
inline uint64_t MostTaken(uint64_t k) { return k + k / 2; }

// What one sequence may have in scratch at a time.
struct SequenceRecords {
  uint64_t list = 0;  // the longest list
  uint64_t all = 0;   // what is sorted, in all its lists
};

// What a selection leaves: candidates where it found them, or, where they were more than `taken`
// holds, the best of them there. Headers tell which. All in one view, in this order: headers,
// candidates, what was taken.
struct Selection {
  bool alone = false;  // by lanes with sequences of their own, in quads
  BufferView view;
  List candidates;
  List taken;  // its headers are those of both
};

// One slice of sequences, planned from its elements to its results.
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
  // Whether a cut may be faster although a lane could keep all k: in long rows, if they are enough.
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
  // Of so many candidates in a selection's list: a record each, or quads (top_k_quads.hlsli).
  uint64_t ListRecords(uint64_t candidates, bool alone) const {
    if (!alone) return candidates;
    return CeilDiv(candidates, 4) * TOP_K_QUAD_RECORDS(VectorElements() == 2);
  }
  Selection NewSelection(uint64_t block, bool alone);
  // Whether lanes with sequences of their own select: where that is faster, and views are large
  // enough to rank what they leave.
  bool SelectsAlone(const Keys& keys, uint64_t block) const;
  Selection SelectFromBlocks(const Keys& keys, uint64_t block);
  List KeepOfBlocks(const List& winners, const Keys& keys, uint64_t block);
  // How KeepBest walks the elements of a part.
  Layout WalkOf(const IterationSpace& part) const;
  KernelPermutation KeepKernel(Source source, Layout layout, uint64_t kept,
                               bool writes_results) const;
  // A dispatch that keeps the best of runs and writes them to `into`.
  Dispatch KeepDispatch(Source source, Layout layout, uint64_t kept, const List& into);
  // `kept` of each run of so many out of `length`, written from record `base` on.
  TopKKeepConstants Keeping(uint64_t length, uint64_t run, uint64_t kept, const List& into = {},
                            uint64_t base = 0) const;
  void AddKeeping(Dispatch dispatch, Source source, const TopKKeepConstants& constants);
  // Reads the input's part, and says where it is.
  TopKPart ReadPart(Dispatch& dispatch, const IterationSpace& part) const;

  List SortElements();
  List SortList(List list);
  List SortSelection(const Selection& selection);
  // Sorts by places those sequences for which that serves, of which headers tell, into the list
  // that it returns. An empty one: for none.
  List AddSpread(const Selection& selection);
  // The last merge writes into `last`, unless that is empty.
  List MergeAll(List runs, uint64_t run_count, const List& last);
  // The ranks of a sequence as a space of their own, cut where the outputs' views end.
  std::vector<IterationSpace> Ranks() const;
  // Writes these ranks, and says where.
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

  // Candidates that a lane that keeps k sorts at a time at least, if there are as many.
  static uint64_t LeastRun(uint64_t k, const PlanOptions& options) {
    return std::max(4 * k, options.prefers_wide_rows ? 0 : tuning::kMinLaneCandidates);
  }
  // How many candidates one lane sorts at a time, out of a list of `length`.
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
  const bool lane_keeps_;  // all k, so that no merge follows
};

}  // namespace opmill::top_k

#endif  // OPMILL_KERNELS_OPERATORS_TOP_K_TOP_K_SLICE_H_
