// hardmax: finds the first maximum of every result, and writes the output.
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_walk.h"
#include "kernels/plan/tuning.h"
#include "shaders/hardmax_constants.h"

namespace opmill {
namespace {

// Writes the elements of all results of `slice`.
void AddOnes(PlanBuilder& builder, DataType type, const IterationSpace& slice,
             const RecordSet& records) {
  const PlanOptions& options = builder.options();
  // Only views of the output and the records are used.
  SliceLimits limits = LimitsFor(type, type, options);
  limits.input_elements = ~uint64_t{0};
  for (const IterationSpace& part : SliceReduced(slice, limits)) {
    if (builder.full()) return;
    const Work work = {
        .units = part.results(),
        .items = part.index_count(),
        .side_by_side = !part.kept.empty() &&
                        (part.reduced.empty() ||
                         part.kept.back().output_stride < part.reduced.back().output_stride),
        .most_lane_items = tuning::kMaxLaneItems};
    const PlacedView output = WriteElements(BufferRole::Output(), type, part.output_base,
                                            OutputSpan(part.kept) + OutputSpan(part.reduced));
    Dispatch dispatch;
    dispatch.kernel = builder.Kernel(
        {.shader = "hardmax",
         .entry = "WriteOnes",
         .macros = {{"DATA_TYPE", static_cast<uint32_t>(type)}, {"THREADS", options.threads}}});
    dispatch.reads[0] = records.view;
    dispatch.writes[0] = output.view;
    HardmaxConstants constants = {};
    constants.output_base = output.base;
    constants.first_position = static_cast<uint32_t>(part.index_base);
    constants.record_count = static_cast<uint32_t>(records.count);
    constants.read_stride = static_cast<uint32_t>(records.result_stride);
    constants.read_item_stride = static_cast<uint32_t>(records.split_stride);
    SetDims(part.kept, constants.kept, constants.kept_rank);
    SetDims(part.reduced, constants.reduced, constants.reduced_rank);
    SetSharing(dispatch, constants, work, ChooseSharing(work, options));
    builder.Add(std::move(dispatch));
  }
}

}  // namespace

absl::Status PlanHardmax(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const HardmaxDesc desc = HardmaxDesc::From(operator_desc);
  const DataType type = desc.input.data_type;
  FillGaps(builder, BufferRole::Output(), *desc.output);
  const IterationSpace space =
      MakeIterationSpace(desc.input, desc.axes, *desc.output, nullptr, ReducedOrder::kRowMajor);
  AddReductionToRecords(builder, ArgReduceFolding(type, Extreme::kMax, AxisDirection::kIncreasing),
                        space, type, [&](const IterationSpace& slice, const RecordSet& records) {
                          AddOnes(builder, type, slice, records);
                        });
  return absl::OkStatus();
}

}  // namespace opmill
