// cumulative_summation: a lane processes each short sequence. Long sequences are divided into
// blocks: the first pass sums each block; the second one adds the sums of the earlier blocks and
// computes the results.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/plan/fold.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/cumulative_summation_constants.h"

namespace opmill {
namespace {

constexpr uint32_t kLaneItems = 4;       // per tile: a vector of 32-bit elements
constexpr uint64_t kShortSequence = 32;  // shorter than a group is worth
// The most blocks: each group reads the sums of all blocks before its own, a few loads per lane.
constexpr uint64_t kMaxBlocks = 1024;

class Planner {
 public:
  Planner(PlanBuilder& builder, const CumulativeSummationDesc& desc)
      : builder_(builder), desc_(desc), type_(desc.input.data_type) {}

  void AddSlice(const IterationSpace& slice, const SliceLimits& limits) {
    std::vector<IterationSpace> parts = SliceReduced(slice, limits);
    if (desc_.axis_direction == AxisDirection::kDecreasing)
      std::reverse(parts.begin(), parts.end());
    const uint64_t results = slice.results();
    const uint64_t length = desc_.input.sizes[desc_.axis];
    const PlanOptions& options = builder_.options();
    if (parts.size() == 1 && (length <= kShortSequence || results >= options.parallel_lanes())) {
      Dispatch scan =
          MakeDispatch("ScanSequences", parts[0], /*carries=*/false, Constants(parts[0]));
      DealUnits(scan, results, options.threads);
      scans_.push_back(std::move(scan));
      return;
    }
    // Each part adds at most one block to those of an undivided sequence.
    const uint64_t in_view = options.max_view_elements / results;
    const uint64_t most =
        std::clamp<uint64_t>(in_view - std::min(in_view, parts.size()), 1, kMaxBlocks);
    const uint64_t blocks = std::clamp<uint64_t>(4 * options.parallel_groups / results, 1, most);
    const uint64_t block_items =
        RoundUp(CeilDiv(length, blocks), uint64_t{options.threads} * kLaneItems);
    uint64_t records = 0;
    for (const IterationSpace& part : parts) records += CeilDiv(part.position_count(), block_items);
    const bool carries = records > 1;
    const BufferView sums =
        carries ? Records(builder_.ReserveRecords(results * records), results * records)
                : BufferView();
    uint64_t first_record = 0;
    for (const IterationSpace& part : parts) {
      CumulativeSummationConstants constants = Constants(part);
      constants.groups.unit_count = static_cast<uint32_t>(results);
      constants.block_length = static_cast<uint32_t>(block_items);
      constants.blocks = static_cast<uint32_t>(CeilDiv(part.position_count(), block_items));
      constants.first_record = static_cast<uint32_t>(first_record);
      constants.record_stride = static_cast<uint32_t>(records);
      const uint64_t groups = results * constants.blocks;
      Dispatch scan = MakeDispatch("ScanBlocks", part, carries, constants);
      scan.reads[1] = sums;
      SetGroups(scan, groups);
      if (carries) {
        Dispatch sum = MakeDispatch("SumBlocks", part, carries, constants);
        sum.writes[0] = sums;
        SetGroups(sum, groups);
        first_record += constants.blocks;
        builder_.Add(std::move(sum));
      }
      scans_.push_back(std::move(scan));
    }
  }

  // What follows the sums of all blocks.
  void AddScans() {
    builder_.NextPass();
    for (Dispatch& scan : scans_) builder_.Add(std::move(scan));
  }

 private:
  PlacedView InputOf(const IterationSpace& part) const {
    return ReadElements(type_, part.bases[kInputTensor], part.Span(kInputTensor));
  }

  PlacedView OutputOf(const IterationSpace& part) const {
    return WriteElements(BufferRole::Output(), type_, part.bases[kOutputTensor],
                         part.Span(kOutputTensor));
  }

  CumulativeSummationConstants Constants(const IterationSpace& part) const {
    const SpaceDim along = part.reduced.empty() ? SpaceDim() : part.reduced[0];
    CumulativeSummationConstants constants = {};
    SetDims(part.kept, constants.kept, constants.kept_rank);
    constants.length = static_cast<uint32_t>(part.position_count());
    constants.input_base = InputOf(part).base;
    constants.output_base = OutputOf(part).base;
    constants.input_stride = static_cast<uint32_t>(along.strides[kInputTensor]);
    constants.output_stride = static_cast<uint32_t>(along.strides[kOutputTensor]);
    if (desc_.axis_direction == AxisDirection::kDecreasing) {
      // From the last element on, with strides below zero: offsets wrap.
      constants.input_base += static_cast<uint32_t>(SpanOf(part.reduced, kInputTensor));
      constants.output_base += static_cast<uint32_t>(SpanOf(part.reduced, kOutputTensor));
      constants.input_stride = 0 - constants.input_stride;
      constants.output_stride = 0 - constants.output_stride;
    }
    return constants;
  }

  Dispatch MakeDispatch(const char* entry, const IterationSpace& part, bool carries,
                        const CumulativeSummationConstants& constants) {
    const bool sums_blocks = std::string(entry) == "SumBlocks";
    KernelPermutation kernel = {
        .shader = "cumulative_summation",
        .entry = entry,
        .macros = {{"DATA_TYPE", static_cast<uint32_t>(SignlessType(type_))},
                   {"THREADS", builder_.options().threads}}};
    if (sums_blocks) {
      kernel.macros.push_back({"SUMS_BLOCKS", 1});
    } else {
      kernel.macros.push_back({"EXCLUSIVE", desc_.has_exclusive_sum ? 1u : 0u});
      kernel.macros.push_back({"CARRIES", carries ? 1u : 0u});
      kernel.macros.push_back({"LANE_ITEMS", kLaneItems});
    }
    Dispatch dispatch;
    dispatch.kernel = builder_.Kernel(std::move(kernel));
    dispatch.reads[0] = InputOf(part).view;
    if (!sums_blocks) dispatch.writes[0] = OutputOf(part).view;
    dispatch.constants = constants;
    return dispatch;
  }

  PlanBuilder& builder_;
  const CumulativeSummationDesc& desc_;
  const DataType type_;
  std::vector<Dispatch> scans_;
};

}  // namespace

absl::Status PlanCumulativeSummation(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const CumulativeSummationDesc desc = CumulativeSummationDesc::From(operator_desc);
  FillGaps(builder, BufferRole::Output(), *desc.output);
  const IterationSpace space =
      MakeIterationSpace(desc.input, {desc.axis}, *desc.output, nullptr, ReducedOrder::kRowMajor);
  SliceLimits limits = LimitsFor(desc.input.data_type, desc.input.data_type, builder.options());
  // Each part has at least one block, whose sum takes a record, and all records of a slice must fit
  // into a view.
  const uint64_t parts =
      MostParts(SpanOf(space.reduced, kInputTensor) + 1, limits.elements[kInputTensor]) +
      MostParts(SpanOf(space.reduced, kOutputTensor) + 1, limits.elements[kOutputTensor]);
  const uint64_t length = desc.input.sizes[desc.axis];
  limits.results =
      std::clamp<uint64_t>(builder.options().max_view_elements / (std::min(parts, length) + 1), 1,
                           kMaxLanes / builder.options().threads);
  Planner planner(builder, desc);
  for (const IterationSpace& slice : SliceKept(space, limits)) {
    if (builder.full()) return absl::OkStatus();
    planner.AddSlice(slice, limits);
  }
  planner.AddScans();
  return absl::OkStatus();
}

}  // namespace opmill
