#include "kernels/plan/plan_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

ViewFormat FormatOf(DataType type) {
  switch (ElementBytes(type)) {
    case 1:
      return ViewFormat::kUint8;
    case 2:
      return ViewFormat::kUint16;
    case 8:
      return ViewFormat::kUint32x2;
    default:
      return ViewFormat::kUint32;
  }
}

}  // namespace

uint32_t ViewElementBytes(ViewFormat format) {
  switch (format) {
    case ViewFormat::kUint8:
      return 1;
    case ViewFormat::kUint16:
      return 2;
    case ViewFormat::kUint32:
      return 4;
    case ViewFormat::kUint32x2:
      return 8;
    case ViewFormat::kVector:
      break;
  }
  return kVectorBytes;
}

uint32_t PlanBuilder::Kernel(KernelPermutation permutation) {
  const auto found = std::find(plan_.kernels.begin(), plan_.kernels.end(), permutation);
  const uint32_t index = static_cast<uint32_t>(found - plan_.kernels.begin());
  if (found == plan_.kernels.end()) plan_.kernels.push_back(std::move(permutation));
  return index;
}

Pass& PlanBuilder::pass() {
  if (plan_.passes.empty()) plan_.passes.emplace_back();
  return plan_.passes.back();
}

void PlanBuilder::NextPass() {
  if (!pass().dispatches.empty() || !pass().fills.empty()) plan_.passes.emplace_back();
}

void PlanBuilder::Add(Dispatch dispatch) {
  if (full()) return;
  ++dispatches_;
  pass().dispatches.push_back(std::move(dispatch));
}

uint64_t PlanBuilder::Reserve(uint64_t size_bytes) {
  const uint64_t offset = scratch_end_;
  scratch_end_ = RoundUp(offset + size_bytes, 256);
  scratch_high_ = std::max(scratch_high_, scratch_end_);
  return offset;
}

uint64_t PlanBuilder::ReserveRecords(uint64_t count) { return Reserve(count * kVectorBytes); }

BufferView PlanBuilder::ReserveCounted(uint64_t counters, uint64_t words) {
  const uint64_t offset = Reserve((counters + words) * sizeof(uint32_t));
  pass();
  plan_.passes.front().fills.push_back({.role = BufferRole::Scratch(),
                                        .offset_bytes = offset,
                                        .size_bytes = counters * sizeof(uint32_t)});
  return {.role = BufferRole::Scratch(),
          .format = ViewFormat::kUint32,
          .offset_bytes = offset,
          .element_count = counters + words};
}

absl::StatusOr<OperatorPlan> PlanBuilder::Finish(std::vector<uint64_t> input_bytes,
                                                 std::vector<uint64_t> output_bytes) {
  if (full()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The strides reach so far that the operator needs ", kMaxSlices,
                     " dispatches or more; the limit is ", kMaxSlices - 1, "."));
  }
  if (scratch_high_ > options_.max_scratch_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("The operator needs ", scratch_high_,
                                                     " bytes of scratch memory, more than "
                                                     "max_scratch_bytes (",
                                                     options_.max_scratch_bytes, ")."));
  }
  if (plan_.passes.back().dispatches.empty() && plan_.passes.back().fills.empty()) {
    plan_.passes.pop_back();
  }
  plan_.input_bytes = std::move(input_bytes);
  plan_.output_bytes = std::move(output_bytes);
  plan_.scratch_bytes = scratch_high_;
  return std::move(plan_);
}

DataType SignlessType(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return DataType::kUint8;
    case DataType::kInt16:
      return DataType::kUint16;
    case DataType::kInt32:
      return DataType::kUint32;
    case DataType::kInt64:
      return DataType::kUint64;
    default:
      return type;
  }
}

PlacedView ReadElements(DataType type, uint64_t base, uint64_t span, BufferRole role) {
  const uint64_t vector_elements = kVectorBytes / ElementBytes(type);
  const uint64_t first = base / vector_elements;
  const uint64_t last = (base + span) / vector_elements;
  return {.view = {.role = role,
                   .format = ViewFormat::kVector,
                   .offset_bytes = first * kVectorBytes,
                   .element_count = last - first + 1},
          .base = static_cast<uint32_t>(base - first * vector_elements)};
}

PlacedView WriteElements(BufferRole role, DataType type, uint64_t base, uint64_t span) {
  const uint64_t per_vector = kVectorBytes / ElementBytes(type);
  const uint64_t first = base / per_vector * per_vector;
  return {.view = {.role = role,
                   .format = FormatOf(type),
                   .offset_bytes = first * ElementBytes(type),
                   .element_count = base + span - first + 1},
          .base = static_cast<uint32_t>(base - first)};
}

BufferView Records(uint64_t scratch_offset, uint64_t count) {
  return {.role = BufferRole::Scratch(),
          .format = ViewFormat::kVector,
          .offset_bytes = scratch_offset,
          .element_count = count};
}

BufferView InFormat(BufferView view, ViewFormat format) {
  view.element_count *= ViewElementBytes(view.format) / ViewElementBytes(format);
  view.format = format;
  return view;
}

Dim ToDim(const SpaceDim& dim) {
  return {.size = static_cast<uint32_t>(dim.size),
          .input_stride = static_cast<uint32_t>(dim.strides[kInputTensor]),
          .output_stride = static_cast<uint32_t>(dim.strides[kOutputTensor]),
          .index_stride = static_cast<uint32_t>(dim.strides[kIndicesTensor])};
}

void SetDims(absl::Span<const SpaceDim> from, Dim (&dims)[OPMILL_MAX_DIMS], uint32_t& rank) {
  rank = static_cast<uint32_t>(from.size());
  std::transform(from.begin(), from.end(), dims, ToDim);
}

void SetGroups(Dispatch& dispatch, uint64_t count, uint32_t first_group) {
  constexpr uint64_t kMaxGroups = 65535;
  constexpr uint64_t kColumns = 32768;
  const uint64_t x = count <= kMaxGroups ? count : kColumns;
  dispatch.groups = {static_cast<uint32_t>(x), static_cast<uint32_t>((count + x - 1) / x)};
  GroupConstants constants = dispatch.constants.groups();
  constants.group_columns = dispatch.groups[0];
  constants.first_group = first_group;
  dispatch.constants.set_groups(constants);
}

void DealUnits(Dispatch& dispatch, uint64_t units, uint64_t lanes) {
  GroupConstants constants = dispatch.constants.groups();
  constants.unit_count = static_cast<uint32_t>(units);
  dispatch.constants.set_groups(constants);
  SetGroups(dispatch, CeilDiv(units, lanes));
}

void FillGaps(PlanBuilder& builder, BufferRole role, const TensorDesc& desc) {
  if (IsPacked(desc) && RequiredBytes(desc) == ElementCount(desc) * ElementBytes(desc.data_type)) {
    return;
  }
  builder.Add(Fill{.role = role, .offset_bytes = 0, .size_bytes = RequiredBytes(desc)});
}

}  // namespace opmill
