// top_k. Long sequences: champions of blocks, then the blocks of the k best champions. What is left
// is sorted in runs by single lanes, and the runs are merged, each cut to k.
#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/operator_plans.h"
#include "kernels/tuning.h"

namespace opmill {
namespace {

// Records of every sequence of a slice, `length` each.
struct List {
  BufferView view;
  uint64_t length = 0;
  uint64_t sequence_stride = 0;
  uint64_t item_stride = 1;
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
        k_(desc.k) {}

  void Plan() {
    const uint64_t block = BlockLength();
    List list =
        block > 0 ? SortList(GatherBlocks(SortList(Champions(block)), block)) : SortElements();
    WriteResults(list);
  }

  // Records that one sequence may have in scratch at a time.
  static uint64_t RecordsPerSequence(uint64_t length, uint64_t k, DataType type);

 private:
  uint64_t VectorElements() const { return kVectorBytes / ElementBytes(type_); }

  std::vector<ShaderMacro> Macros(bool writes_results) const {
    return {{"DATA_TYPE", static_cast<uint32_t>(type_)},
            {"THREADS", builder_.options().threads},
            {"LARGEST", desc_.axis_direction == AxisDirection::kDecreasing ? 1u : 0u},
            {"NAN_FIRST", 0},
            {"WRITES_RESULTS", writes_results ? 1u : 0u}};
  }

  List NewList(uint64_t length) {
    const uint64_t count = sequences_ * length;
    return {.view = Records(builder_.ReserveRecords(count), count),
            .length = length,
            .sequence_stride = length};
  }

  void SetUnits(Dispatch& dispatch, uint64_t units, uint64_t units_per_group) {
    dispatch.constants.unit_count = static_cast<uint32_t>(units);
    SetGroups(dispatch, CeilDiv(units, units_per_group));
  }

  static void SetRead(DispatchConstants& constants, const List& list) {
    constants.read_stride = static_cast<uint32_t>(list.sequence_stride);
    constants.read_item_stride = static_cast<uint32_t>(list.item_stride);
  }

  // Elements of a block that pays: champions and candidates together are far fewer than elements.
  // 0 when sorting everything is cheaper.
  uint64_t BlockLength() const;

  List Champions(uint64_t block);
  List GatherBlocks(const List& winners, uint64_t block);
  List SortElements();
  List SortList(List list);
  List MergeAll(List runs, uint64_t run_count);
  void WriteResults(const List& list);

  // How many candidates are sorted at a time, out of a list of `length`: by one group in a tile,
  // or, for small k, by one lane that keeps the best.
  bool LaneKeeps() const { return k_ <= tuning::kMaxLaneKeep; }
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
};

uint64_t ChooseBlockLength(uint64_t length, uint64_t k, uint64_t vector_elements) {
  const auto ideal = static_cast<uint64_t>(std::sqrt(static_cast<double>(length) / k));
  const uint64_t block =
      std::min(std::bit_ceil(std::max(ideal, vector_elements)), tuning::kMaxBlockElements);
  const uint64_t sorted = CeilDiv(length, block) + k * block;
  return length > tuning::kMinTournament && sorted * 2 <= length ? block : 0;
}

uint64_t TopKSlice::BlockLength() const { return ChooseBlockLength(length_, k_, VectorElements()); }

List TopKSlice::Champions(uint64_t block) {
  Folding folding = ArgReduceFolding(
      type_, desc_.axis_direction == AxisDirection::kDecreasing ? Extreme::kMax : Extreme::kMin,
      AxisDirection::kIncreasing);
  folding.macros = {{"LARGEST", desc_.axis_direction == AxisDirection::kDecreasing ? 1u : 0u},
                    {"FROM_LAST", 0},
                    {"NAN_FIRST", 0}};
  struct PartWalk {
    Walk walk;
    Sharing sharing;
  };
  std::vector<PartWalk> walks;
  uint64_t champions = 0;
  for (const IterationSpace& part : parts_) {
    PartWalk w = {.walk = ChooseWalk(part, type_), .sharing = {}};
    // A block is one split of the walk; in rows its steps are vectors.
    const bool vectors = !w.walk.columns && w.walk.load != Load::kScalar;
    w.sharing.split_items = vectors ? block / VectorElements() : block;
    w.sharing.splits = CeilDiv(w.walk.items, w.sharing.split_items);
    champions += w.sharing.splits;
    walks.push_back(w);
  }
  List list = NewList(champions);
  if (walks[0].walk.columns) {
    list.sequence_stride = 1;
    list.item_stride = sequences_;
  }
  RecordTarget target = {
      .view = list.view, .result_stride = list.sequence_stride, .split_stride = list.item_stride};
  for (size_t p = 0; p < parts_.size(); ++p) {
    AddWalk(builder_, folding, parts_[p], walks[p].walk, walks[p].sharing, type_, target);
    target.base += walks[p].sharing.splits * list.item_stride;
  }
  builder_.NextPass();
  return list;
}

List TopKSlice::GatherBlocks(const List& winners, uint64_t block) {
  const List list = NewList(k_ * block);
  const uint32_t threads = builder_.options().threads;
  for (const IterationSpace& part : parts_) {
    const Walk walk = ChooseWalk(part, type_);
    const bool vectors = !walk.columns && walk.load != Load::kScalar;
    const PlacedView input =
        ReadElements(type_, part.input_base, InputSpan(part.kept) + InputSpan(part.reduced));
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel({"top_k", "GatherBlocks", Macros(false)});
    dispatch.reads = {input.view, winners.view};
    dispatch.writes[0] = list.view;
    DispatchConstants& constants = dispatch.constants;
    SetDims(constants, part, part.kept.size(), part.reduced.size());
    SetRead(constants, winners);
    constants.input_base = input.base;
    constants.index_base = static_cast<uint32_t>(part.index_base);
    constants.index_count = static_cast<uint32_t>(part.index_count());
    constants.record_stride = static_cast<uint32_t>(list.sequence_stride);
    constants.list_length = static_cast<uint32_t>(list.length);
    constants.block_length = static_cast<uint32_t>(block);
    constants.block_align = static_cast<uint32_t>(vectors ? VectorElements() : 1);
    SetUnits(dispatch, sequences_ * list.length, threads);
    builder_.Add(std::move(dispatch));
  }
  builder_.NextPass();
  return list;
}

uint64_t TopKSlice::RunLength(uint64_t length) const {
  if (!LaneKeeps()) return std::min(length, tuning::kMaxLaneKeep);
  const PlanOptions& options = builder_.options();
  const uint64_t lanes = uint64_t{options.threads} * options.parallel_groups;
  const uint64_t runs_wanted = std::max<uint64_t>(1, lanes / sequences_);
  return std::clamp(CeilDiv(length, runs_wanted), std::min(length, 4 * k_),
                    tuning::kMaxLaneCandidates);
}

void TopKSlice::AddSortRuns(const List* source, const IterationSpace* part, uint64_t length,
                            uint64_t run, uint64_t kept, const List& into, uint64_t base) {
  std::vector<ShaderMacro> macros = Macros(false);
  macros.push_back({"SOURCE", source != nullptr ? 1u : 0u});
  macros.push_back({"KEEP", static_cast<uint32_t>(std::bit_ceil(kept))});
  Dispatch dispatch;
  dispatch.kernel = builder_.Kernel({"top_k", "KeepBest", std::move(macros)});
  DispatchConstants& constants = dispatch.constants;
  if (source != nullptr) {
    dispatch.reads[1] = source->view;
    SetRead(constants, *source);
  } else {
    const PlacedView input =
        ReadElements(type_, part->input_base, InputSpan(part->kept) + InputSpan(part->reduced));
    dispatch.reads[0] = input.view;
    constants.input_base = input.base;
    constants.index_base = static_cast<uint32_t>(part->index_base);
    SetDims(constants, *part, part->kept.size(), part->reduced.size());
  }
  dispatch.writes[0] = into.view;
  constants.record_base = static_cast<uint32_t>(base);
  constants.record_stride = static_cast<uint32_t>(into.sequence_stride);
  constants.list_length = static_cast<uint32_t>(length);
  constants.sequences = static_cast<uint32_t>(sequences_);
  constants.item_count = static_cast<uint32_t>(run);
  constants.k = static_cast<uint32_t>(kept);
  SetUnits(dispatch, sequences_ * CeilDiv(length, run), builder_.options().threads);
  builder_.Add(std::move(dispatch));
}

List TopKSlice::SortElements() {
  const uint64_t run = RunLength(length_);
  const uint64_t kept = std::min(run, k_);
  uint64_t run_count = 0;
  for (const IterationSpace& part : parts_) run_count += CeilDiv(part.index_count(), run);
  const List runs = NewList(run_count * kept);
  uint64_t base = 0;
  for (const IterationSpace& part : parts_) {
    AddSortRuns(nullptr, &part, part.index_count(), run, kept, runs, base);
    base += CeilDiv(part.index_count(), run) * kept;
  }
  builder_.NextPass();
  if (run_count == 1) return runs;
  return LaneKeeps() ? SortList(runs) : MergeAll(runs, run_count);
}

List TopKSlice::SortList(List list) {
  for (;;) {
    const uint64_t run = RunLength(list.length);
    const uint64_t run_count = CeilDiv(list.length, run);
    const uint64_t kept = std::min(run, k_);
    const List runs = NewList(run_count * kept);
    AddSortRuns(&list, nullptr, list.length, run, kept, runs, 0);
    builder_.NextPass();
    if (run_count == 1) return runs;
    if (!LaneKeeps()) return MergeAll(runs, run_count);
    list = runs;
  }
}

List TopKSlice::MergeAll(List runs, uint64_t run_count) {
  uint64_t run_length = runs.length / run_count;
  List spare = NewList(runs.length);
  while (run_count > 1) {
    const uint64_t merged_length = std::min(run_length * 2, k_);
    const uint64_t merged_count = CeilDiv(run_count, 2);
    // All merged runs are full but the last one, which takes what is left.
    const uint64_t last = runs.length - (merged_count - 1) * 2 * run_length;
    List merged = spare;
    merged.length = (merged_count - 1) * merged_length + std::min(merged_length, last);
    merged.sequence_stride = merged.length;
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel({"top_k", "MergeRuns", Macros(false)});
    dispatch.reads[1] = runs.view;
    dispatch.writes[0] = merged.view;
    DispatchConstants& constants = dispatch.constants;
    SetRead(constants, runs);
    constants.record_stride = static_cast<uint32_t>(merged.sequence_stride);
    constants.list_length = static_cast<uint32_t>(runs.length);
    constants.runs = static_cast<uint32_t>(merged_count);
    constants.item_count = static_cast<uint32_t>(run_length);
    constants.k = static_cast<uint32_t>(merged_length);
    SetUnits(dispatch, sequences_ * merged_count * CeilDiv(merged_length, tuning::kMergeChunk),
             builder_.options().threads);
    builder_.Add(std::move(dispatch));
    builder_.NextPass();
    spare = runs;
    runs = merged;
    run_count = merged_count;
    run_length = merged_length;
  }
  return runs;
}

void TopKSlice::WriteResults(const List& list) {
  const PlanOptions& options = builder_.options();
  const DataType index_type = desc_.output_indices->data_type;
  std::vector<ShaderMacro> macros = Macros(true);
  macros.push_back({"INDEX_WIDE", ElementBytes(index_type) == 8 ? 1u : 0u});
  const uint32_t kernel = builder_.Kernel({"top_k", "WriteResults", std::move(macros)});

  // The ranks of a sequence as a space of their own, cut where the outputs' views end.
  IterationSpace ranks = space_;
  ranks.index_base = 0;
  ranks.reduced = {{.size = k_,
                    .input_stride = 0,
                    .output_stride = EffectiveStrides(*desc_.output_values)[desc_.axis],
                    .index_stride = EffectiveStrides(*desc_.output_indices)[desc_.axis]}};
  SliceLimits limits = LimitsFor(type_, type_, options);
  limits.input_elements = ~uint64_t{0};
  limits.index_elements = LimitsFor(type_, index_type, options).output_elements;
  for (const IterationSpace& rank_part : SliceReduced(ranks, limits)) {
    const uint64_t rank_count = rank_part.index_count();
    const PlacedView values =
        WriteElements(BufferRole::kOutput0, type_, rank_part.output_base,
                      OutputSpan(rank_part.kept) + OutputSpan(rank_part.reduced));
    const PlacedView indices =
        WriteElements(BufferRole::kOutput1, index_type, rank_part.output2_base,
                      IndexSpan(rank_part.kept) + IndexSpan(rank_part.reduced));
    for (const IterationSpace& part : parts_) {
      const PlacedView input =
          ReadElements(type_, part.input_base, InputSpan(part.kept) + InputSpan(part.reduced));
      Dispatch dispatch;
      dispatch.kernel = kernel;
      dispatch.reads = {input.view, list.view};
      dispatch.writes = {values.view, indices.view};
      DispatchConstants& constants = dispatch.constants;
      SetDims(constants, part, part.kept.size(), part.reduced.size());
      if (!rank_part.reduced.empty()) {
        constants.reduced[0].output_stride =
            static_cast<uint32_t>(rank_part.reduced[0].output_stride);
        constants.reduced[0].index_stride =
            static_cast<uint32_t>(rank_part.reduced[0].index_stride);
      }
      SetRead(constants, list);
      constants.input_base = input.base;
      constants.output_base = values.base;
      constants.output2_base = indices.base;
      constants.index_base = static_cast<uint32_t>(part.index_base);
      constants.index_count = static_cast<uint32_t>(part.index_count());
      constants.item_count = static_cast<uint32_t>(rank_count);
      constants.rank_base = static_cast<uint32_t>(rank_part.index_base);
      SetUnits(dispatch, sequences_ * rank_count, options.threads);
      builder_.Add(std::move(dispatch));
    }
  }
  builder_.NextPass();
}

uint64_t TopKSlice::RecordsPerSequence(uint64_t length, uint64_t k, DataType type) {
  const uint64_t vector_elements = kVectorBytes / ElementBytes(type);
  const uint64_t block = ChooseBlockLength(length, k, vector_elements);
  // The longest list, whatever is made of it afterwards.
  if (block > 0) return std::max(CeilDiv(length, block) + 2, k * block);
  const uint64_t run = k <= tuning::kMaxLaneKeep ? std::min(length, 4 * k) : tuning::kMaxLaneKeep;
  return CeilDiv(length, run) * std::min(run, k);
}

}  // namespace

absl::Status PlanTopK(PlanBuilder& builder, const TopKDesc& desc) {
  const PlanOptions& options = builder.options();
  FillGaps(builder, BufferRole::kOutput0, *desc.output_values);
  FillGaps(builder, BufferRole::kOutput1, *desc.output_indices);
  builder.NextPass();
  IterationSpace space = MakeIterationSpace(desc.input, {desc.axis}, *desc.output_values,
                                            &*desc.output_indices, ReducedOrder::kRowMajor);
  // The ranks have output strides of their own; see WriteResults.
  for (SpaceDim& dim : space.reduced) dim.output_stride = dim.index_stride = 0;

  const DataType type = desc.input.data_type;
  const uint64_t length = desc.input.sizes[desc.axis];
  const uint64_t per_sequence = TopKSlice::RecordsPerSequence(length, desc.k, type);
  if (per_sequence > options.max_view_elements) {
    return absl::ResourceExhaustedError(
        absl::StrCat("top_k with k (", desc.k, ") of ", length, " elements sorts ", per_sequence,
                     " candidates at once; the limit is ", options.max_view_elements, "."));
  }
  SliceLimits limits = LimitsFor(type, type, options);
  limits.index_elements = LimitsFor(type, desc.output_indices->data_type, options).output_elements;
  limits.results = std::max<uint64_t>(
      1, std::min(options.max_view_elements, tuning::kMaxListRecords) / per_sequence);
  for (const IterationSpace& slice : SliceKept(space, limits)) {
    if (builder.full()) break;
    // Slices follow one another, so they may use the same scratch.
    const uint64_t mark = builder.Mark();
    TopKSlice(builder, desc, slice, limits).Plan();
    builder.Release(mark);
  }
  return absl::OkStatus();
}

}  // namespace opmill
