#include "kernels/plan/fold.h"

#include <algorithm>
#include <bit>

#include "kernels/plan/tuning.h"

namespace opmill {

SliceLimits LimitsFor(DataType input, DataType output, const PlanOptions& options) {
  const uint64_t vector_elements = kVectorBytes / ElementBytes(input);
  return {
      .elements = {std::min((options.max_view_elements - 1) * vector_elements, uint64_t{1} << 31),
                   options.max_view_elements - kVectorBytes / ElementBytes(output), kNoLimit}};
}

Sharing ChooseSharing(const Work& work, const PlanOptions& options) {
  const uint64_t threads = options.threads;
  const auto lanes_of = [&](uint64_t items) { return std::bit_ceil(CeilDiv(work.items, items)); };
  uint64_t lanes = lanes_of(tuning::kLaneItems);
  if (work.side_by_side) {
    // The lanes that adjacent units leave share the work, and more of them if no group may help.
    const uint64_t adjacent = std::min(std::bit_ceil(work.units), tuning::kAdjacentUnits);
    lanes = std::min(lanes, std::max<uint64_t>(1, threads / adjacent));
    if (work.in_one_group) {
      lanes = std::max(lanes, lanes_of(work.most_lane_items));
    }
  } else {
    lanes = std::max(lanes, std::min(lanes_of(tuning::kTurnItems), tuning::kMinRowLanes));
  }
  lanes = std::min(lanes, threads);
  const uint64_t tiles = CeilDiv(work.units, threads / lanes);
  uint64_t splits = 1;
  if (!work.in_one_group) {
    // Not more: the last few groups would run alone.
    const uint64_t filling = std::max<uint64_t>(1, options.parallel_groups / tiles);
    splits = std::max(CeilDiv(work.items, lanes * work.most_lane_items),
                      std::min(filling, CeilDiv(work.items, lanes * tuning::kMinSplitItems)));
  }
  return {.lane_bits = static_cast<uint32_t>(std::countr_zero(lanes)),
          .part_shift =
              work.side_by_side ? static_cast<uint32_t>(std::countr_zero(threads / lanes)) : 0,
          .tiles = tiles,
          .splits = splits};
}

namespace {

// How one kept and reduced slice is read.
struct Reading {
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

Reading ChooseReading(const IterationSpace& space, const Folding& folding) {
  const uint64_t vector = kVectorBytes / ElementBytes(folding.input_type);
  const SpaceDim* inner_kept = space.kept.empty() ? nullptr : &space.kept.back();
  const SpaceDim* inner_reduced = space.reduced.empty() ? nullptr : &space.reduced.back();
  const bool kept_neighbors = inner_kept != nullptr && inner_kept->strides[kInputTensor] == 1;
  const bool reduced_neighbors =
      inner_reduced != nullptr && inner_reduced->strides[kInputTensor] == 1;
  Reading reading = {.work = {.units = space.results(),
                              .items = space.position_count(),
                              .most_lane_items = folding.adds_floats ? tuning::kMaxSummedItems
                                                                     : tuning::kMaxLaneItems},
                     .kept_dims = space.kept.size(),
                     .reduced_dims = space.reduced.size()};
  if (reduced_neighbors && !(kept_neighbors && inner_kept->size > inner_reduced->size)) {
    const uint64_t alignment = AlignmentOf(space, kInputTensor, inner_reduced, vector);
    reading.run_length = inner_reduced->size;
    reading.run_vectors = CeilDiv(vector - alignment + reading.run_length, vector);
    reading.load = alignment == vector && reading.run_length % vector == 0 ? LOAD_ROW_ALIGNED
                                                                           : LOAD_ROW_SHIFTED;
    reading.work.items = space.position_count() / reading.run_length * reading.run_vectors;
    reading.reduced_dims -= 1;
  } else if (kept_neighbors) {
    reading.load = AlignmentOf(space, kInputTensor, inner_kept, vector) == vector
                       ? LOAD_COLUMN_ALIGNED
                       : LOAD_COLUMN_SHIFTED;
    reading.column_units = CeilDiv(inner_kept->size, vector);
    reading.work.units = space.results() / inner_kept->size * reading.column_units;
    reading.work.side_by_side = true;
    reading.kept_dims -= 1;
  } else {
    // Adjacent lanes compute adjacent results, unless the reduction's own stride is smaller.
    reading.work.side_by_side = inner_kept != nullptr && (inner_reduced == nullptr ||
                                                          inner_kept->strides[kInputTensor] <
                                                              inner_reduced->strides[kInputTensor]);
  }
  return reading;
}

uint32_t AddKernel(PlanBuilder& builder, const Folding& folding, uint32_t load, bool divides,
                   uint32_t result, bool joins) {
  KernelPermutation kernel = {.shader = folding.shader,
                              .entry = "Reduce",
                              .macros = {{"DATA_TYPE", static_cast<uint32_t>(folding.input_type)},
                                         {"LOAD", load},
                                         {"DIMS", divides ? 1u : 0u},
                                         {"RESULT", result},
                                         {"JOINS", joins ? 1u : 0u}}};
  kernel.macros.insert(kernel.macros.end(), folding.macros.begin(), folding.macros.end());
  kernel.macros.push_back({"THREADS", builder.options().threads});
  return builder.Kernel(std::move(kernel));
}

uint32_t ResultOf(DataType output) { return ElementBytes(output) == 8 ? RESULT_PAIR : RESULT_WORD; }

// Where the results of `space` go.
PlacedView PlaceOutput(const IterationSpace& space, const ReductionOutput& output) {
  return WriteElements(output.role, output.type, space.bases[kOutputTensor],
                       SpanOf(space.kept, kOutputTensor));
}

// A kept and reduced slice, and how it is reduced.
struct ReductionPart {
  IterationSpace space;
  Reading reading;
  Sharing sharing;
  BufferView partials;  // absent if groups share no results
};

// What groups leave for each other (reduction_join.hlsli): a counter for each tile, and the states.
uint64_t PartialsBase(const Sharing& sharing) { return RoundUp(sharing.tiles, 4); }

uint64_t PartialWords(const Folding& folding, const Reading& reading) {
  const uint64_t results =
      reading.is_column() ? kVectorBytes / ElementBytes(folding.input_type) : 1;
  return reading.work.units * results * MOST_PART_WORDS;
}

ReductionPart PlanPart(PlanBuilder& builder, const Folding& folding, IterationSpace space) {
  ReductionPart part = {.space = std::move(space)};
  part.reading = ChooseReading(part.space, folding);
  part.sharing = ChooseSharing(part.reading.work, builder.options());
  // One view has the partials of all splits.
  const uint64_t words = PartialWords(folding, part.reading);
  const uint64_t room = builder.options().max_view_elements;
  const uint64_t base = PartialsBase(part.sharing);
  const uint64_t most_splits = base < room ? std::max<uint64_t>(1, (room - base) / words) : 1;
  part.sharing.splits = std::min(part.sharing.splits, most_splits);
  if (part.sharing.splits > 1) {
    part.partials = builder.ReserveCounted(base, part.sharing.splits * words);
  }
  return part;
}

// Adds a dispatch that reduces a part, and writes a record per result, the first one at
// `record_base`, or, without `records`, the outputs.
void AddPart(PlanBuilder& builder, const Folding& folding, const ReductionPart& part,
             const ReductionOutput& output, const RecordSet* records, uint64_t record_base) {
  const IterationSpace& space = part.space;
  const Reading& reading = part.reading;
  Dispatch dispatch;
  dispatch.kernel = AddKernel(builder, folding, reading.load, reading.divides(),
                              records != nullptr ? RESULT_RECORD : ResultOf(output.type),
                              part.sharing.splits > 1);
  const PlacedView input =
      ReadElements(folding.input_type, space.bases[kInputTensor], space.Span(kInputTensor));
  dispatch.reads[0] = input.view;
  dispatch.writes[1] = part.partials;

  ReductionConstants constants = {};
  constants.input_base = input.base;
  constants.last_vector = static_cast<uint32_t>(input.view.element_count - 1);
  if (records != nullptr) {
    dispatch.writes[0] = records->view;
    constants.record_base = static_cast<uint32_t>(record_base);
  } else {
    const PlacedView placed = PlaceOutput(space, output);
    dispatch.writes[0] = placed.view;
    constants.output_base = placed.base;
  }
  constants.partials_base = static_cast<uint32_t>(PartialsBase(part.sharing));
  constants.first_position = static_cast<uint32_t>(space.first_position);
  constants.reduced_count = static_cast<uint32_t>(space.position_count());
  constants.position_mask = folding.from_last ? ~uint32_t{0} : 0;
  constants.run_length = static_cast<uint32_t>(reading.run_length);
  constants.run_vectors = static_cast<uint32_t>(reading.run_vectors);
  if (reading.is_column()) {
    constants.columns = static_cast<uint32_t>(space.kept.back().size);
    constants.column_units = static_cast<uint32_t>(reading.column_units);
    constants.column_output_stride =
        static_cast<uint32_t>(space.kept.back().strides[kOutputTensor]);
  }
  SetDims(absl::MakeConstSpan(space.kept).first(reading.kept_dims), constants.kept,
          constants.kept_rank);
  SetDims(absl::MakeConstSpan(space.reduced).first(reading.reduced_dims), constants.reduced,
          constants.reduced_rank);
  SetSharing(dispatch, constants, reading.work, part.sharing);
  builder.Add(std::move(dispatch));
}

// The second pass: folds the records of each result of `space`.
void AddCombine(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                const RecordSet& records, uint64_t reduced_count, const ReductionOutput& output) {
  const Work work = {.units = space.results(),
                     .items = records.count,
                     .side_by_side = true,
                     .most_lane_items = tuning::kMaxLaneRecords,
                     .in_one_group = true};
  Dispatch dispatch;
  dispatch.kernel = AddKernel(builder, folding, LOAD_RECORD, false, ResultOf(output.type), false);
  dispatch.reads[0] = records.view;
  const PlacedView placed = PlaceOutput(space, output);
  dispatch.writes[0] = placed.view;
  ReductionConstants constants = {};
  constants.output_base = placed.base;
  constants.record_stride = static_cast<uint32_t>(records.stride);
  constants.reduced_count = static_cast<uint32_t>(reduced_count);
  constants.position_mask = folding.from_last ? ~uint32_t{0} : 0;
  SetDims(space.kept, constants.kept, constants.kept_rank);
  SetSharing(dispatch, constants, work, ChooseSharing(work, builder.options()));
  builder.Add(std::move(dispatch));
}

using UseRecords = absl::FunctionRef<void(const IterationSpace& slice, const RecordSet& records)>;

// Results of one part are stored in the output, if there is one.
void AddSlices(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
               DataType output_type, const ReductionOutput* output, UseRecords use) {
  const PlanOptions& options = builder.options();
  SliceLimits limits = LimitsFor(folding.input_type, output_type, options);
  // One view must have room for the records of every part, and for the partials of some splits, or
  // of as many as limit the items of a lane.
  const uint64_t most_parts =
      CeilDiv(SpanOf(space.reduced, kInputTensor) + 1, limits.elements[kInputTensor] / 2);
  const uint64_t long_splits =
      MOST_PART_WORDS * (CeilDiv(space.position_count(), tuning::kMaxLaneItems) + 16);
  limits.results =
      std::max<uint64_t>(1, options.max_view_elements / std::max(most_parts, long_splits));

  const std::vector<IterationSpace> slices = SliceKept(space, limits);
  std::vector<std::vector<ReductionPart>> parts(slices.size());
  for (size_t s = 0; s < slices.size() && s < kMaxSlices; ++s) {
    for (IterationSpace& part : SliceReduced(slices[s], limits)) {
      parts[s].push_back(PlanPart(builder, folding, std::move(part)));
    }
  }

  struct Waiting {
    RecordSet records;
    size_t slice = 0;
  };
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
    RecordSet records = {.count = parts[s].size(), .stride = result_count};
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
      waiting.push_back({.records = records, .slice = s});
    }
    uint64_t record_base = 0;
    for (const ReductionPart& part : parts[s]) {
      AddPart(builder, folding, part,
              output != nullptr ? *output : ReductionOutput{.type = output_type},
              has_records ? &records : nullptr, record_base);
      record_base += result_count;
    }
  }
  use_all();
}

}  // namespace

void AddReduction(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                  const ReductionOutput& output) {
  AddSlices(builder, folding, space, output.type, &output,
            [&](const IterationSpace& slice, const RecordSet& records) {
              AddCombine(builder, folding, slice, records, space.position_count(), output);
            });
}

void AddReductionToRecords(PlanBuilder& builder, const Folding& folding,
                           const IterationSpace& space, DataType output, UseRecords use) {
  AddSlices(builder, folding, space, output, nullptr, use);
}

}  // namespace opmill
