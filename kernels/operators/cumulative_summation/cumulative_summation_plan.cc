// cumulative_summation: a lane processes each short sequence. Long sequences are divided into
// blocks: the first pass sums each block; the second one adds the sums of the earlier blocks and
// computes the results.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/reduction/reduction_walk.h"
#include "kernels/plan/plan_builder.h"

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
      Dispatch scan = MakeDispatch("ScanSequences", parts[0], /*carries=*/false);
      DealUnits(scan, results, TurnsOf(results, 1, options), options.threads);
      scans_.push_back(std::move(scan));
      return;
    }
    const uint64_t blocks =
        std::clamp<uint64_t>(4 * options.parallel_groups / results, 1, kMaxBlocks);
    const uint64_t block_items =
        RoundUp(CeilDiv(length, blocks), uint64_t{options.threads} * kLaneItems);
    uint64_t records = 0;
    for (const IterationSpace& part : parts) records += CeilDiv(part.index_count(), block_items);
    const bool carries = records > 1;
    const BufferView sums =
        carries ? Records(builder_.ReserveRecords(results * records), results * records)
                : BufferView();
    uint64_t first_record = 0;
    for (const IterationSpace& part : parts) {
      const auto set_blocks = [&](Dispatch& dispatch) {
        dispatch.constants.split_items = static_cast<uint32_t>(block_items);
        dispatch.constants.splits = static_cast<uint32_t>(CeilDiv(part.index_count(), block_items));
        dispatch.constants.unit_count = static_cast<uint32_t>(results);
        dispatch.constants.record_base = static_cast<uint32_t>(first_record);
        dispatch.constants.record_stride = static_cast<uint32_t>(records);
        SetGroups(dispatch, results * dispatch.constants.splits);
      };
      Dispatch scan = MakeDispatch("ScanBlocks", part, carries);
      scan.reads[1] = sums;
      set_blocks(scan);
      if (carries) {
        Dispatch sum = MakeDispatch("SumBlocks", part, carries);
        sum.writes[0] = sums;
        set_blocks(sum);
        first_record += sum.constants.splits;
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
  Dispatch MakeDispatch(const char* entry, const IterationSpace& part, bool carries) {
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
    const PlacedView input =
        ReadElements(type_, part.input_base, InputSpan(part.kept) + InputSpan(part.reduced));
    const PlacedView output = WriteElements(BufferRole::Output(), type_, part.output_base,
                                            OutputSpan(part.kept) + OutputSpan(part.reduced));
    dispatch.reads[0] = input.view;
    if (!sums_blocks) dispatch.writes[0] = output.view;
    SetDims(dispatch.constants, part, part.kept.size(), part.reduced.size());
    dispatch.constants.item_count = static_cast<uint32_t>(part.index_count());
    dispatch.constants.input_base = input.base;
    dispatch.constants.output_base = output.base;
    if (desc_.axis_direction == AxisDirection::kDecreasing) {
      // Starts at the last element, with negative strides: offsets wrap.
      dispatch.constants.input_base += static_cast<uint32_t>(InputSpan(part.reduced));
      dispatch.constants.output_base += static_cast<uint32_t>(OutputSpan(part.reduced));
      Dim& along = dispatch.constants.reduced[0];
      along.input_stride = 0 - along.input_stride;
      along.output_stride = 0 - along.output_stride;
    }
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
  const SliceLimits limits =
      LimitsFor(desc.input.data_type, desc.input.data_type, builder.options());
  Planner planner(builder, desc);
  for (const IterationSpace& slice : SliceKept(space, limits)) {
    if (builder.full()) return absl::OkStatus();
    planner.AddSlice(slice, limits);
  }
  planner.AddScans();
  return absl::OkStatus();
}

}  // namespace opmill
