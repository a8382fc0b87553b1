// What all methods of top_k share, and the sort of short sequences.
#include <algorithm>
#include <bit>

#include "kernels/operators/top_k/top_k_planner.h"
#include "kernels/operators/top_k/top_k_ranks.h"
#include "kernels/plan/fold.h"

namespace opmill::top_k {

Planner::Planner(PlanBuilder& builder, const TopKDesc& desc, const Choice& choice,
                 const IterationSpace& space)
    : builder_(builder),
      desc_(desc),
      choice_(choice),
      type_(desc.input.data_type),
      length_(desc.input.sizes[desc.axis]),
      k_(desc.k),
      sequences_(space.results()),
      space_(space) {}

void Planner::Plan() {
  switch (choice_.method) {
    case Method::kSort:
      return Sort();
    case Method::kSelect:
      return Select();
    case Method::kRadix:
      return SortByRadix();
  }
}

uint64_t Planner::RecordBytes(DataType type) { return ElementBytes(type) == 8 ? 16 : 8; }

KernelPermutation Planner::Kernel(const char* shader, const char* entry, uint64_t threads) const {
  return {shader,
          entry,
          {{"DATA_TYPE", static_cast<uint32_t>(type_)},
           {"THREADS", Narrow(threads)},
           {"LARGEST", desc_.axis_direction == AxisDirection::kDecreasing ? 1u : 0u}}};
}

ShaderMacro Planner::SourceMacro(bool of_records) {
  return {"SOURCE", of_records ? uint32_t{SOURCE_RECORDS} : uint32_t{SOURCE_ELEMENTS}};
}

ShaderMacro Planner::ResultMacro() const {
  const bool is_wide = ElementBytes(desc_.output_indices->data_type) == 8;
  return {"RESULT", is_wide ? uint32_t{RESULT_WIDE_INDICES} : uint32_t{RESULT_INDICES}};
}

Planner::List Planner::NewList(uint64_t length) {
  const uint64_t bytes = sequences_ * length * record_bytes();
  return {.offset_bytes = builder_.ReserveRecords(CeilDiv(bytes, kVectorBytes)), .length = length};
}

BufferView Planner::ListView(const List& list, uint64_t first, uint64_t count) const {
  return {.role = BufferRole::Scratch(),
          .format = record_bytes() == 8 ? ViewFormat::kUint32x2 : ViewFormat::kVector,
          .offset_bytes = list.offset_bytes + first * record_bytes(),
          .element_count = count};
}

std::vector<Planner::Part> Planner::ElementParts(const Elements& elements) const {
  SliceLimits limits = LimitsFor(type_, type_, builder_.options());
  limits.elements[kOutputTensor] = kNoLimit;
  std::vector<Part> parts;
  for (const IterationSpace& space : SliceReduced(elements.space, limits)) {
    PlacedView placed =
        ReadElements(type_, space.bases[kInputTensor], space.Span(kInputTensor), elements.role);
    placed.view.offset_bytes += elements.offset_bytes;
    parts.push_back({.view = placed.view,
                     .items = {.base = placed.base,
                               .stride = Narrow(Along(space).strides[kInputTensor]),
                               .length = Narrow(space.position_count()),
                               .first_position = Narrow(space.first_position)},
                     .space = space});
  }
  return parts;
}

std::vector<Planner::Part> Planner::ListParts(const List& list) const {
  const uint64_t records = sequences_ * list.length;
  const uint64_t view = builder_.options().max_view_elements;
  // A part starts with a chunk. Only the list of a single sequence has several.
  const uint64_t most =
      records <= view ? list.length : view / choice_.record_chunk * choice_.record_chunk;
  std::vector<Part> parts;
  for (uint64_t first = 0; first < list.length; first += most) {
    const uint64_t length = std::min(most, list.length - first);
    parts.push_back({.view = ListView(list, first, records <= view ? records : length),
                     .items = {.base = 0,
                               .stride = Narrow(list.length),
                               .length = Narrow(length),
                               .first_position = 0},
                     .space = space_});
  }
  return parts;
}

std::vector<IterationSpace> Planner::RankParts() const {
  const PlanOptions& options = builder_.options();
  IterationSpace ranks = space_;
  ranks.first_position = 0;
  ranks.reduced.clear();
  if (k_ > 1) ranks.reduced = {RankDim(desc_)};
  SliceLimits limits = LimitsFor(type_, type_, options);
  limits.elements[kInputTensor] = kNoLimit;
  limits.elements[kIndicesTensor] =
      LimitsFor(type_, desc_.output_indices->data_type, options).elements[kOutputTensor];
  limits.positions = options.max_view_elements - 1;
  return SliceReduced(ranks, limits);
}

TopKOutputs Planner::WriteRanks(Dispatch& dispatch, const IterationSpace& ranks) const {
  const PlacedView values = WriteElements(BufferRole::Output(), type_, ranks.bases[kOutputTensor],
                                          ranks.Span(kOutputTensor));
  const PlacedView indices = WriteElements(BufferRole::Output(1), desc_.output_indices->data_type,
                                           ranks.bases[kIndicesTensor], ranks.Span(kIndicesTensor));
  dispatch.writes = {values.view, indices.view};
  const SpaceDim along = Along(ranks);
  return {.values_base = values.base,
          .indices_base = indices.base,
          .value_stride = Narrow(along.strides[kOutputTensor]),
          .index_stride = Narrow(along.strides[kIndicesTensor])};
}

void Planner::Sort() {
  const std::vector<Part> parts = ElementParts({.space = space_});
  const uint64_t item_bits = std::bit_width(length_ - 1);
  const uint64_t capacity = Capacity(type_);
  // Enough groups to fill the device come before full groups.
  const uint64_t worth = std::max<uint64_t>(1, sequences_ / builder_.options().parallel_groups);
  const uint64_t rows =
      std::min({capacity >> item_bits, uint64_t{TOP_K_MOST_ROWS}, std::bit_floor(worth)});
  KernelPermutation kernel = Kernel("top_k_sort", "SortSequences", choice_.threads);
  kernel.macros.push_back(ResultMacro());
  for (const IterationSpace& ranks : RankParts()) {
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel(kernel);
    dispatch.reads[0] = parts[0].view;
    TopKSortConstants constants = {};
    SetDims(space_.kept, constants.kept, constants.kept_rank);
    constants.outputs = WriteRanks(dispatch, ranks);
    constants.ranks = {.first = Narrow(ranks.first_position),
                       .count = Narrow(ranks.position_count()),
                       .k = Narrow(k_),
                       .unused = 0};
    constants.groups.unit_count = Narrow(sequences_);
    constants.input_base = parts[0].items.base;
    constants.element_stride = parts[0].items.stride;
    constants.length = Narrow(length_);
    constants.row_bits = Narrow(std::bit_width(rows) - 1);
    constants.item_bits = Narrow(item_bits);
    constants.goes_across = constants.element_stride > 1 ? 1 : 0;
    dispatch.constants = constants;
    SetGroups(dispatch, CeilDiv(sequences_, rows));
    builder_.Add(std::move(dispatch));
  }
}

}  // namespace opmill::top_k
