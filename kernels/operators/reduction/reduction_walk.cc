#include "kernels/operators/reduction/reduction_walk.h"

#include <algorithm>
#include <bit>

#include "kernels/plan/tuning.h"

namespace opmill {
namespace {

// The number of vectors per lane in tiles that cover a row of columns; 0 if tiles do not pay off.
uint64_t TileVectors(const Walk& walk, bool finds_positions, const PlanOptions& options) {
  if (options.prefers_wide_rows || walk.column_units <= options.threads) return 0;
  const uint64_t row_vectors = CeilDiv(walk.column_units, options.threads);
  uint64_t most = tuning::kMaxTileVectors;
  if (walk.items < tuning::kMinTileItems) {
    // Few rows are not split, so tiles must leave enough groups.
    const uint64_t filling = walk.units / options.parallel_lanes();
    if (finds_positions && walk.narrow() && walk.items >= tuning::kMinRowPartItems) {
      most = std::clamp<uint64_t>(filling, 1, most);
    } else if (walk.items < tuning::kMinWideTileItems || std::min(row_vectors, filling) < most) {
      return 0;
    }
  }
  return EvenPart(row_vectors, most);
}

// More rows are read at a time if they lie on few pages and their elements are narrow. With several
// reduced dimensions, the innermost one decides.
uint64_t TileRows(const Walk& walk, const SpaceDim* inner_reduced) {
  const uint64_t stride = inner_reduced == nullptr ? 0 : inner_reduced->input_stride;
  const uint64_t bytes = stride * kVectorBytes / walk.vector_elements;
  return walk.narrow() && bytes <= tuning::kMaxCloseRowBytes ? tuning::kCloseTileRows
                                                             : tuning::kTileRows;
}

}  // namespace

uint64_t TurnsOf(uint64_t units, uint64_t steps, const PlanOptions& options) {
  return options.prefers_wide_rows ? 1 : options.turns(units, tuning::kMinTurnItems / steps);
}

SliceLimits LimitsFor(DataType input, DataType output, const PlanOptions& options) {
  const uint64_t vector_elements = kVectorBytes / ElementBytes(input);
  return {.input_elements =
              std::min((options.max_view_elements - 1) * vector_elements, uint64_t{1} << 31),
          .output_elements = options.max_view_elements - kVectorBytes / ElementBytes(output)};
}

Walk ChooseWalk(const IterationSpace& space, const Folding& folding, const PlanOptions& options) {
  const uint32_t vector = static_cast<uint32_t>(kVectorBytes / ElementBytes(folding.input_type));
  const SpaceDim* inner_kept = space.kept.empty() ? nullptr : &space.kept.back();
  const SpaceDim* inner_reduced = space.reduced.empty() ? nullptr : &space.reduced.back();
  const bool kept_neighbours = inner_kept != nullptr && inner_kept->input_stride == 1;
  const bool reduced_neighbours = inner_reduced != nullptr && inner_reduced->input_stride == 1;

  Walk walk;
  walk.vector_elements = vector;
  if (reduced_neighbours && !(kept_neighbours && inner_kept->size > inner_reduced->size)) {
    const uint64_t alignment = CommonAlignment(space, inner_reduced, vector);
    walk.run_length = inner_reduced->size;
    walk.run_vectors = CeilDiv(vector - alignment + walk.run_length, vector);
    walk.load =
        alignment == vector && walk.run_length % vector == 0 ? Load::kAligned : Load::kShifted;
    walk.units = space.results();
    walk.items = space.index_count() / walk.run_length * walk.run_vectors;
    return walk;
  }
  if (kept_neighbours) {
    walk.columns = true;
    walk.load =
        CommonAlignment(space, inner_kept, vector) == vector ? Load::kAligned : Load::kShifted;
    walk.column_units = CeilDiv(inner_kept->size, vector);
    walk.width = vector >= 4 ? 4 : 1;
    walk.units = space.results() / inner_kept->size * walk.column_units;
    walk.items = space.index_count();
    walk.tile_vectors = TileVectors(walk, folding.finds_positions, options);
    walk.tile_rows = TileRows(walk, inner_reduced);
    return walk;
  }
  walk.load = Load::kScalar;
  walk.items = space.index_count();
  walk.units = space.results();
  // Adjacent lanes compute adjacent results, unless the reduction's own stride is smaller.
  walk.columns = inner_kept != nullptr && (inner_reduced == nullptr ||
                                           inner_kept->input_stride < inner_reduced->input_stride);
  if (walk.columns) walk.column_units = inner_kept->size;
  return walk;
}

namespace {

// The number of groups per split.
uint64_t GroupsOf(const Walk& walk, uint64_t lanes, uint64_t lane_units,
                  const PlanOptions& options) {
  const uint64_t group_units = lane_units * options.threads / lanes;
  if (walk.tile_vectors == 0) return CeilDiv(walk.units, group_units);
  return walk.units / walk.column_units * CeilDiv(walk.column_units, group_units);
}

uint64_t LaneUnits(const Walk& walk, const Sharing& sharing, const PlanOptions& options) {
  if (walk.tile_vectors > 0) return walk.tile_vectors;
  if (sharing.lane_bits > 0) return 1;
  return TurnsOf(walk.units * sharing.splits, sharing.split_items, options);
}

// The steps of a lane's stretch of a row; 0 if the lanes that share it are interleaved.
uint64_t LaneItems(const Walk& walk, const Sharing& sharing, const PlanOptions& options) {
  const uint64_t of_lane = CeilDiv(sharing.split_items, uint64_t{1} << sharing.lane_bits);
  if (walk.columns || sharing.lane_bits == 0 || options.prefers_wide_rows ||
      of_lane < tuning::kMinStretchItems) {
    return 0;
  }
  return RoundUp(of_lane, 2 * tuning::kLineItems) + tuning::kLineItems;
}

uint64_t MostLaneItems(const Walk& walk) {
  if (walk.tile_vectors > 0) return tuning::kMaxTileItems;
  return walk.columns ? tuning::kMaxColumnItems : tuning::kMaxLaneItems;
}

}  // namespace

Sharing ChooseSharing(const Walk& walk, const PlanOptions& options) {
  const uint64_t lanes_wanted = options.parallel_lanes();
  uint64_t lanes = 1;
  if (walk.columns) {
    // Lanes that columns leave idle share the work.
    lanes = walk.units >= options.threads ? 1 : options.threads / std::bit_ceil(walk.units);
  } else if (options.prefers_wide_rows) {
    lanes = std::min<uint64_t>(options.threads, std::bit_ceil(walk.items));
  } else {
    // As many lanes as are needed to limit each one's steps, or to fill the device.
    const uint64_t filling =
        std::min(CeilDiv(lanes_wanted, walk.units), CeilDiv(walk.items, tuning::kMinLaneItems));
    // A step of a single element covers less than a step of a vector, and so does its rounding
    // error.
    const uint64_t lone = tuning::kLoneLaneItems / (walk.load == Load::kScalar ? 2 : 1);
    const uint64_t sharing = CeilDiv(walk.items, lone);
    lanes = std::min<uint64_t>(options.threads, std::bit_ceil(std::max(filling, sharing)));
  }
  const uint64_t groups = GroupsOf(walk, lanes, std::max<uint64_t>(1, walk.tile_vectors), options);
  uint64_t splits = CeilDiv(walk.items, lanes * MostLaneItems(walk));
  if (groups * splits < options.parallel_groups) {
    const uint64_t filling = CeilDiv(options.parallel_groups, groups);
    splits =
        std::max(splits, std::min(filling, CeilDiv(walk.items, lanes * tuning::kMinSplitItems)));
  }
  const uint64_t split_items = CeilDiv(walk.items, splits);
  return {.lane_bits = static_cast<uint32_t>(std::countr_zero(lanes)),
          .splits = CeilDiv(walk.items, split_items),
          .split_items = split_items};
}

namespace {

// The number of items per unit if it is small and lanes process many units, so that kernels without
// a loop can be used; otherwise 0. `dims` determine an item's offset, which must not need a
// division.
uint32_t FewItems(const Walk& walk, const Sharing& sharing, uint64_t lane_units, size_t dims) {
  const size_t free_dims = walk.columns || walk.load == Load::kScalar ? 1 : 0;
  if (walk.tile_vectors > 0 || lane_units < 2 || sharing.splits > 1 || dims > free_dims ||
      walk.items > tuning::kMaxFewItems) {
    return 0;
  }
  return static_cast<uint32_t>(walk.items);
}

KernelPermutation Permutation(const Folding& folding, const char* entry, Load load, size_t dims,
                              uint32_t width, uint32_t items, bool record_result,
                              const Sharing& sharing, const PlanOptions& options,
                              DataType output_type) {
  KernelPermutation kernel = {
      .shader = folding.shader,
      .entry = entry,
      .macros = {{"DATA_TYPE", static_cast<uint32_t>(folding.input_type)},
                 {"THREADS", options.threads},
                 {"LOAD", static_cast<uint32_t>(load)},
                 {"DIMS", static_cast<uint32_t>(std::min<size_t>(dims, 2))},
                 {"RESULT", record_result ? 1u : 0u},
                 {"SHARE", sharing.lane_bits > 0 ? 1u : 0u},
                 {"WIDTH", width},
                 {"ITEMS", items},
                 {"OUTPUT_WIDE", !record_result && ElementBytes(output_type) == 8 ? 1u : 0u}}};
  kernel.macros.insert(kernel.macros.end(), folding.macros.begin(), folding.macros.end());
  return kernel;
}

const char* EntryOf(const Walk& walk) {
  if (!walk.columns) return "ReduceRows";
  return walk.tile_vectors > 0 ? "ReduceTiles" : "ReduceColumns";
}

// Where the results of `space` go.
PlacedView PlaceOutput(const IterationSpace& space, const ReductionOutput& output) {
  return WriteElements(output.role, output.type, space.output_base, OutputSpan(space.kept));
}

// The destination of partial results.
struct RecordTarget {
  BufferView view;
  uint64_t base = 0;
  uint64_t result_stride = 0;
  uint64_t split_stride = 0;
};

// Adds a dispatch that reduces `space` and writes one record per result and split, or, without
// `records`, the outputs.
void AddWalk(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
             const Walk& walk, const Sharing& sharing, const ReductionOutput& output,
             const std::optional<RecordTarget>& records) {
  // For rows, the innermost reduced dimension is the run itself, unless elements are read one by
  // one.
  const size_t runs = !walk.columns && walk.load != Load::kScalar ? 1 : 0;
  const size_t dims = space.reduced.size() - runs;
  // If nothing is reduced, a stride of 0 avoids a separate kernel.
  const size_t kernel_dims = std::max(dims, 1 - runs);
  const uint64_t lane_units = LaneUnits(walk, sharing, builder.options());
  Dispatch dispatch;
  dispatch.kernel =
      builder.Kernel(Permutation(folding, EntryOf(walk), walk.load, kernel_dims, walk.width,
                                 FewItems(walk, sharing, lane_units, kernel_dims),
                                 records.has_value(), sharing, builder.options(), output.type));
  const PlacedView input = ReadElements(folding.input_type, space.input_base,
                                        InputSpan(space.kept) + InputSpan(space.reduced));
  dispatch.reads[0] = input.view;

  ReductionConstants constants = {};
  constants.input_base = input.base;
  constants.last_vector = static_cast<uint32_t>(input.view.element_count - 1);
  if (records.has_value()) {
    dispatch.writes[0] = records->view;
    constants.record_base = static_cast<uint32_t>(records->base);
    constants.record_stride = static_cast<uint32_t>(records->result_stride);
    constants.split_stride = static_cast<uint32_t>(records->split_stride);
  } else {
    const PlacedView placed = PlaceOutput(space, output);
    dispatch.writes[0] = placed.view;
    constants.output_base = placed.base;
  }
  constants.index_base = static_cast<uint32_t>(space.index_base);
  constants.reduced_count = static_cast<uint32_t>(space.index_count());
  constants.item_count = static_cast<uint32_t>(walk.items);
  constants.splits = static_cast<uint32_t>(sharing.splits);
  constants.split_items = static_cast<uint32_t>(sharing.split_items);
  constants.lane_bits = sharing.lane_bits;
  constants.lane_items = static_cast<uint32_t>(LaneItems(walk, sharing, builder.options()));
  constants.position_mask = folding.from_last ? ~uint32_t{0} : 0;
  if (walk.columns) {
    const SpaceDim& inner = space.kept.back();
    constants.columns = static_cast<uint32_t>(inner.size);
    constants.column_units = static_cast<uint32_t>(walk.column_units);
    constants.column_input_stride = static_cast<uint32_t>(inner.input_stride);
    constants.column_output_stride = static_cast<uint32_t>(inner.output_stride);
    constants.tile_rows = static_cast<uint32_t>(walk.tile_rows);
  } else {
    constants.run_length = static_cast<uint32_t>(walk.run_length);
    constants.run_vectors = static_cast<uint32_t>(walk.run_vectors);
  }
  SetDims(absl::MakeConstSpan(space.kept).first(space.kept.size() - (walk.columns ? 1 : 0)),
          constants.kept, constants.kept_rank);
  SetDims(absl::MakeConstSpan(space.reduced).first(dims), constants.reduced,
          constants.reduced_rank);
  constants.groups.unit_count = static_cast<uint32_t>(walk.units);
  constants.groups.lane_units = static_cast<uint32_t>(lane_units);
  dispatch.constants = constants;
  const uint64_t groups =
      GroupsOf(walk, uint64_t{1} << sharing.lane_bits, lane_units, builder.options());
  SetGroups(dispatch, groups * sharing.splits);
  builder.Add(std::move(dispatch));
}

// The second pass: folds `splits` records of each result of `space`.
void AddCombine(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                const RecordTarget& from, uint64_t splits, uint64_t reduced_count,
                const ReductionOutput& output) {
  const PlanOptions& options = builder.options();
  const uint64_t results = space.results();
  // A lane combines few records if there are enough lanes, and never so many that a sum loses
  // precision.
  const bool lanes_to_spare = results < options.parallel_lanes();
  const uint64_t lane_records = lanes_to_spare ? tuning::kMinLaneItems : tuning::kMaxLaneRecords;
  const uint64_t lanes =
      std::min<uint64_t>(options.threads, std::bit_ceil(CeilDiv(splits, lane_records)));
  const Sharing sharing = {.lane_bits = static_cast<uint32_t>(std::countr_zero(lanes))};
  Dispatch dispatch;
  dispatch.kernel = builder.Kernel(Permutation(folding, "ReduceRows", Load::kRecord, 0, 1, 0, false,
                                               sharing, options, output.type));
  dispatch.reads[0] = from.view;
  const PlacedView placed = PlaceOutput(space, output);
  dispatch.writes[0] = placed.view;
  ReductionConstants constants = {};
  constants.output_base = placed.base;
  constants.read_stride = static_cast<uint32_t>(from.result_stride);
  constants.read_item_stride = static_cast<uint32_t>(from.split_stride);
  constants.reduced_count = static_cast<uint32_t>(reduced_count);
  constants.item_count = static_cast<uint32_t>(splits);
  constants.split_items = constants.item_count;
  constants.splits = 1;
  constants.lane_bits = sharing.lane_bits;
  constants.position_mask = folding.from_last ? ~uint32_t{0} : 0;
  SetDims(space.kept, constants.kept, constants.kept_rank);
  dispatch.constants = constants;
  const uint64_t lane_units = lanes > 1 ? 1 : TurnsOf(results, splits, options);
  DealUnits(dispatch, results, lane_units, options.threads / lanes);
  builder.Add(std::move(dispatch));
}

}  // namespace

void AddReduction(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                  const ReductionOutput& output) {
  const PlanOptions& options = builder.options();
  SliceLimits limits = LimitsFor(folding.input_type, output.type, options);
  // One view must have room for the records of every part and for at least some splits.
  const uint64_t parts = CeilDiv(InputSpan(space.reduced) + 1, limits.input_elements / 2);
  limits.results = std::max<uint64_t>(1, options.max_view_elements / (16 * parts));

  struct Combining {
    RecordTarget records;
    uint64_t splits = 0;
    size_t slice = 0;
  };
  const std::vector<IterationSpace> slices = SliceKept(space, limits);
  // The records of splits are needed until they are combined; then their scratch is reused by the
  // next slices.
  const uint64_t mark = builder.Mark();
  uint64_t records_waiting = 0;
  std::vector<Combining> combinings;
  const auto combine = [&] {
    builder.NextPass();
    for (const Combining& combining : combinings) {
      AddCombine(builder, folding, slices[combining.slice], combining.records, combining.splits,
                 space.index_count(), output);
    }
    combinings.clear();
  };
  for (size_t s = 0; s < slices.size() && !builder.full(); ++s) {
    const IterationSpace& kept = slices[s];
    const uint64_t result_count = kept.results();
    const std::vector<IterationSpace> parts_of_kept = SliceReduced(kept, limits);
    std::vector<Walk> walks;
    std::vector<Sharing> sharings;
    uint64_t splits = 0;
    const uint64_t most_splits =
        std::max<uint64_t>(1, options.max_view_elements / result_count / parts_of_kept.size());
    for (const IterationSpace& part : parts_of_kept) {
      Walk& walk = walks.emplace_back(ChooseWalk(part, folding, options));
      Sharing sharing = ChooseSharing(walk, options);
      if (sharing.splits > most_splits) {
        sharing.split_items = CeilDiv(walk.items, most_splits);
        sharing.splits = CeilDiv(walk.items, sharing.split_items);
        // row_part.hlsli cannot count more rows.
        if (sharing.split_items > tuning::kMaxTileItems) walk.tile_vectors = 0;
      }
      splits += sharing.splits;
      sharings.push_back(sharing);
    }
    std::optional<RecordTarget> target;
    if (splits > 1) {
      if (records_waiting + result_count * splits > tuning::kMaxListRecords &&
          !combinings.empty()) {
        combine();
        builder.NextPass();
        builder.Release(mark);
        records_waiting = 0;
      }
      records_waiting += result_count * splits;
      // Adjacent lanes write adjacent records.
      const bool by_split = walks[0].columns;
      target = RecordTarget{
          .view = Records(builder.ReserveRecords(result_count * splits), result_count * splits),
          .result_stride = by_split ? 1 : splits,
          .split_stride = by_split ? result_count : 1};
      combinings.push_back({.records = *target, .splits = splits, .slice = s});
    }
    for (size_t p = 0; p < parts_of_kept.size(); ++p) {
      AddWalk(builder, folding, parts_of_kept[p], walks[p], sharings[p], output, target);
      if (target.has_value()) target->base += sharings[p].splits * target->split_stride;
    }
  }
  if (!combinings.empty()) combine();
}

}  // namespace opmill
