#include "kernels/operators/reduction/reduction_walk.h"

#include <algorithm>
#include <bit>

#include "kernels/plan/tuning.h"

namespace opmill {

SliceLimits LimitsFor(DataType input, DataType output, const PlanOptions& options) {
  const uint64_t vector_elements = kVectorBytes / ElementBytes(input);
  return {.input_elements =
              std::min((options.max_view_elements - 1) * vector_elements, uint64_t{1} << 31),
          .output_elements = options.max_view_elements - kVectorBytes / ElementBytes(output)};
}

Sharing ChooseSharing(const Work& work, const PlanOptions& options) {
  const uint64_t threads = options.threads;
  // Lanes take kLaneItems at a time.
  uint64_t lanes = std::bit_ceil(CeilDiv(work.items, tuning::kLaneItems));
  if (work.side_by_side) {
    // The lanes that adjacent units leave share the work, and more of them if no group may help.
    const uint64_t adjacent = std::min(std::bit_ceil(work.units), tuning::kAdjacentUnits);
    lanes = std::min(lanes, std::max<uint64_t>(1, threads / adjacent));
    if (work.in_one_group) {
      lanes = std::max(lanes, std::bit_ceil(CeilDiv(work.items, work.most_lane_items)));
    }
  } else {
    lanes = std::max(lanes, std::min(std::bit_ceil(work.items), tuning::kMinRowLanes));
  }
  lanes = std::min(lanes, threads);
  const uint64_t tiles = CeilDiv(work.units, threads / lanes);
  uint64_t splits = 1;
  if (!work.in_one_group) {
    const uint64_t filling = CeilDiv(options.parallel_groups, tiles);
    splits = std::max(CeilDiv(work.items, lanes * work.most_lane_items),
                      std::min(filling, CeilDiv(work.items, lanes * tuning::kMinSplitItems)));
  }
  const uint64_t split_items = CeilDiv(work.items, splits);
  return {.lane_bits = static_cast<uint32_t>(std::countr_zero(lanes)),
          .part_shift =
              work.side_by_side ? static_cast<uint32_t>(std::countr_zero(threads / lanes)) : 0,
          .tiles = tiles,
          .splits = CeilDiv(work.items, split_items),
          .split_items = split_items};
}

namespace {

// How one kept and reduced slice is read.
struct Walk {
  uint32_t load = LOAD_SCALAR;
  Work work;
  size_t kept_dims = 0;  // those by which a unit is found
  size_t reduced_dims = 0;
  uint64_t column_units = 1;
  uint64_t run_length = 0;
  uint64_t run_vectors = 0;

  bool is_column() const { return load == LOAD_COLUMN_ALIGNED || load == LOAD_COLUMN_SHIFTED; }
  bool is_row() const { return load == LOAD_ROW_ALIGNED || load == LOAD_ROW_SHIFTED; }
  bool divides() const { return is_row() ? reduced_dims > 0 : reduced_dims > 1; }
};

Walk ChooseWalk(const IterationSpace& space, const Folding& folding) {
  const uint64_t vector = kVectorBytes / ElementBytes(folding.input_type);
  const SpaceDim* inner_kept = space.kept.empty() ? nullptr : &space.kept.back();
  const SpaceDim* inner_reduced = space.reduced.empty() ? nullptr : &space.reduced.back();
  const bool kept_neighbors = inner_kept != nullptr && inner_kept->input_stride == 1;
  const bool reduced_neighbors = inner_reduced != nullptr && inner_reduced->input_stride == 1;
  Walk walk = {.work = {.units = space.results(),
                        .items = space.index_count(),
                        .most_lane_items =
                            folding.adds_floats ? tuning::kMaxSummedItems : tuning::kMaxLaneItems},
               .kept_dims = space.kept.size(),
               .reduced_dims = space.reduced.size()};
  if (reduced_neighbors && !(kept_neighbors && inner_kept->size > inner_reduced->size)) {
    const uint64_t alignment = CommonAlignment(space, inner_reduced, vector);
    walk.run_length = inner_reduced->size;
    walk.run_vectors = CeilDiv(vector - alignment + walk.run_length, vector);
    walk.load =
        alignment == vector && walk.run_length % vector == 0 ? LOAD_ROW_ALIGNED : LOAD_ROW_SHIFTED;
    walk.work.items = space.index_count() / walk.run_length * walk.run_vectors;
    walk.reduced_dims -= 1;
  } else if (kept_neighbors) {
    walk.load = CommonAlignment(space, inner_kept, vector) == vector ? LOAD_COLUMN_ALIGNED
                                                                     : LOAD_COLUMN_SHIFTED;
    walk.column_units = CeilDiv(inner_kept->size, vector);
    walk.work.units = space.results() / inner_kept->size * walk.column_units;
    walk.work.side_by_side = true;
    walk.kept_dims -= 1;
  } else {
    // Adjacent lanes compute adjacent results, unless the reduction's own stride is smaller.
    walk.work.side_by_side =
        inner_kept != nullptr &&
        (inner_reduced == nullptr || inner_kept->input_stride < inner_reduced->input_stride);
  }
  return walk;
}

KernelPermutation Permutation(const Folding& folding, uint32_t load, bool divides,
                              uint32_t result) {
  KernelPermutation kernel = {.shader = folding.shader,
                              .entry = "Reduce",
                              .macros = {{"DATA_TYPE", static_cast<uint32_t>(folding.input_type)},
                                         {"LOAD", load},
                                         {"DIMS", divides ? 1u : 0u},
                                         {"RESULT", result}}};
  kernel.macros.insert(kernel.macros.end(), folding.macros.begin(), folding.macros.end());
  return kernel;
}

uint32_t Permute(PlanBuilder& builder, KernelPermutation kernel) {
  kernel.macros.push_back({"THREADS", builder.options().threads});
  return builder.Kernel(std::move(kernel));
}

uint32_t ResultOf(DataType output) { return ElementBytes(output) == 8 ? RESULT_PAIR : RESULT_WORD; }

// Where the results of `space` go.
PlacedView PlaceOutput(const IterationSpace& space, const ReductionOutput& output) {
  return WriteElements(output.role, output.type, space.output_base, OutputSpan(space.kept));
}

// Adds a dispatch that reduces `space` and writes one record per result and split, the first one at
// `record_base`, or, without `records`, the outputs.
void AddWalk(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
             const Walk& walk, const Sharing& sharing, const ReductionOutput& output,
             const RecordSet* records, uint64_t record_base) {
  Dispatch dispatch;
  dispatch.kernel =
      Permute(builder, Permutation(folding, walk.load, walk.divides(),
                                   records != nullptr ? RESULT_RECORD : ResultOf(output.type)));
  const PlacedView input = ReadElements(folding.input_type, space.input_base,
                                        InputSpan(space.kept) + InputSpan(space.reduced));
  dispatch.reads[0] = input.view;

  ReductionConstants constants = {};
  constants.input_base = input.base;
  constants.last_vector = static_cast<uint32_t>(input.view.element_count - 1);
  if (records != nullptr) {
    dispatch.writes[0] = records->view;
    constants.record_base = static_cast<uint32_t>(record_base);
    constants.record_stride = static_cast<uint32_t>(records->result_stride);
    constants.split_stride = static_cast<uint32_t>(records->split_stride);
  } else {
    const PlacedView placed = PlaceOutput(space, output);
    dispatch.writes[0] = placed.view;
    constants.output_base = placed.base;
  }
  constants.index_base = static_cast<uint32_t>(space.index_base);
  constants.reduced_count = static_cast<uint32_t>(space.index_count());
  constants.position_mask = folding.from_last ? ~uint32_t{0} : 0;
  constants.run_length = static_cast<uint32_t>(walk.run_length);
  constants.run_vectors = static_cast<uint32_t>(walk.run_vectors);
  if (walk.is_column()) {
    constants.columns = static_cast<uint32_t>(space.kept.back().size);
    constants.column_units = static_cast<uint32_t>(walk.column_units);
    constants.column_output_stride = static_cast<uint32_t>(space.kept.back().output_stride);
  }
  SetDims(absl::MakeConstSpan(space.kept).first(walk.kept_dims), constants.kept,
          constants.kept_rank);
  SetDims(absl::MakeConstSpan(space.reduced).first(walk.reduced_dims), constants.reduced,
          constants.reduced_rank);
  SetSharing(dispatch, constants, walk.work, sharing);
  builder.Add(std::move(dispatch));
}

// The second pass: folds the records of each result of `space`.
void AddCombine(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                const RecordSet& records, uint64_t reduced_count, const ReductionOutput& output) {
  const Work work = {.units = space.results(),
                     .items = records.count,
                     .side_by_side = records.result_stride < records.split_stride,
                     .most_lane_items = tuning::kMaxLaneRecords,
                     .in_one_group = true};
  Dispatch dispatch;
  dispatch.kernel =
      Permute(builder, Permutation(folding, LOAD_RECORD, false, ResultOf(output.type)));
  dispatch.reads[0] = records.view;
  const PlacedView placed = PlaceOutput(space, output);
  dispatch.writes[0] = placed.view;
  ReductionConstants constants = {};
  constants.output_base = placed.base;
  constants.read_stride = static_cast<uint32_t>(records.result_stride);
  constants.read_item_stride = static_cast<uint32_t>(records.split_stride);
  constants.reduced_count = static_cast<uint32_t>(reduced_count);
  constants.position_mask = folding.from_last ? ~uint32_t{0} : 0;
  SetDims(space.kept, constants.kept, constants.kept_rank);
  SetSharing(dispatch, constants, work, ChooseSharing(work, builder.options()));
  builder.Add(std::move(dispatch));
}

using UseRecords = absl::FunctionRef<void(const IterationSpace& slice, const RecordSet& records)>;

// Results of one split are stored in the output, if there is one.
void AddSlices(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
               DataType output_type, const ReductionOutput* output, UseRecords use) {
  const PlanOptions& options = builder.options();
  SliceLimits limits = LimitsFor(folding.input_type, output_type, options);
  // One view must have room for the records of every part and for at least some splits, and for as
  // many as limit the items of a lane.
  const uint64_t parts = CeilDiv(InputSpan(space.reduced) + 1, limits.input_elements / 2);
  const uint64_t long_parts = CeilDiv(space.index_count(), tuning::kMaxLaneItems);
  limits.results =
      std::max<uint64_t>(1, options.max_view_elements / std::max(16 * parts, parts + long_parts));

  struct Waiting {
    RecordSet records;
    size_t slice = 0;
  };
  const std::vector<IterationSpace> slices = SliceKept(space, limits);
  // Records are needed until they are used; then their scratch is reused by the next slices.
  const uint64_t mark = builder.Mark();
  uint64_t records_waiting = 0;
  std::vector<Waiting> waiting;
  const auto use_all = [&] {
    if (waiting.empty()) return;
    builder.NextPass();
    for (const Waiting& each : waiting) use(slices[each.slice], each.records);
    waiting.clear();
  };
  for (size_t s = 0; s < slices.size() && !builder.full(); ++s) {
    const uint64_t result_count = slices[s].results();
    const std::vector<IterationSpace> parts_of_kept = SliceReduced(slices[s], limits);
    std::vector<Walk> walks;
    std::vector<Sharing> sharings;
    RecordSet records;
    const uint64_t most_splits =
        std::max<uint64_t>(1, options.max_view_elements / result_count / parts_of_kept.size());
    for (const IterationSpace& part : parts_of_kept) {
      const Work& work = walks.emplace_back(ChooseWalk(part, folding)).work;
      Sharing sharing = ChooseSharing(work, options);
      if (sharing.splits > most_splits) {
        sharing.split_items = CeilDiv(work.items, most_splits);
        sharing.splits = CeilDiv(work.items, sharing.split_items);
      }
      records.count += sharing.splits;
      sharings.push_back(sharing);
    }
    const bool has_records = records.count > 1 || output == nullptr;
    if (has_records) {
      const uint64_t record_count = result_count * records.count;
      if (records_waiting + record_count > tuning::kMaxListRecords && !waiting.empty()) {
        use_all();
        builder.NextPass();
        builder.Release(mark);
        records_waiting = 0;
      }
      records_waiting += record_count;
      records.view = Records(builder.ReserveRecords(record_count), record_count);
      // Adjacent lanes write adjacent records.
      const bool by_split = walks[0].work.side_by_side;
      records.result_stride = by_split ? 1 : records.count;
      records.split_stride = by_split ? result_count : 1;
      waiting.push_back({.records = records, .slice = s});
    }
    if (!has_records) builder.NextPassAfterFills();
    uint64_t record_base = 0;
    for (size_t p = 0; p < parts_of_kept.size(); ++p) {
      AddWalk(builder, folding, parts_of_kept[p], walks[p], sharings[p],
              output != nullptr ? *output : ReductionOutput{.type = output_type},
              has_records ? &records : nullptr, record_base);
      record_base += sharings[p].splits * records.split_stride;
    }
  }
  use_all();
}

}  // namespace

void AddReduction(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                  const ReductionOutput& output) {
  AddSlices(builder, folding, space, output.type, &output,
            [&](const IterationSpace& slice, const RecordSet& records) {
              AddCombine(builder, folding, slice, records, space.index_count(), output);
            });
}

void AddReductionToRecords(PlanBuilder& builder, const Folding& folding,
                           const IterationSpace& space, DataType output, UseRecords use) {
  AddSlices(builder, folding, space, output, nullptr, use);
}

}  // namespace opmill
