// hardmax: finds the first maximum of every result, and writes the output.
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_plan.h"
#include "kernels/plan/tuning.h"
#include "shaders/hardmax_constants.h"

namespace opmill {
namespace {

// What lanes store at a time, and how they share it.
struct Storing {
  uint32_t store = STORE_ELEMENT;
  Work work;
};

Storing ChooseStoring(const IterationSpace& space, DataType type) {
  const uint64_t vector = kVectorBytes / ElementBytes(type);
  Storing storing = {.work = {.units = space.results(),
                              .items = space.position_count(),
                              .most_lane_items = tuning::kMaxLaneItems}};
  Work& work = storing.work;
  work.side_by_side = !space.kept.empty() &&
                      (space.reduced.empty() || space.kept.back().strides[kOutputTensor] <
                                                    space.reduced.back().strides[kOutputTensor]);
  const SpaceDims& dims = work.side_by_side ? space.kept : space.reduced;
  if (dims.empty() || dims.back().strides[kOutputTensor] != 1 || dims.back().size % vector != 0 ||
      AlignmentOf(space, kOutputTensor, &dims.back(), vector) != vector) {
    return storing;
  }
  storing.store = work.side_by_side ? STORE_OF_COLUMNS : STORE_OF_ROW;
  (work.side_by_side ? work.units : work.items) /= vector;
  return storing;
}

// Writes the elements of all results of `slice`.
void AddOnes(PlanBuilder& builder, DataType type, const IterationSpace& slice,
             const RecordSet& records) {
  const PlanOptions& options = builder.options();
  // Only views of the output and the records are used.
  SliceLimits limits = LimitsFor(type, type, options);
  limits.elements[kInputTensor] = ~uint64_t{0};
  for (const IterationSpace& part : SliceReduced(slice, limits)) {
    if (builder.full()) return;
    const Storing storing = ChooseStoring(part, type);
    const uint64_t span = part.Span(kOutputTensor);
    const PlacedView output =
        storing.store == STORE_ELEMENT
            ? WriteElements(BufferRole::Output(), type, part.bases[kOutputTensor], span)
            : ReadElements(type, part.bases[kOutputTensor], span, BufferRole::Output());
    Dispatch dispatch;
    dispatch.kernel = builder.Kernel({.shader = "hardmax",
                                      .entry = "WriteOnes",
                                      .macros = {{"DATA_TYPE", static_cast<uint32_t>(type)},
                                                 {"STORE", storing.store},
                                                 {"THREADS", options.threads}}});
    dispatch.reads[0] = records.view;
    dispatch.writes[0] = output.view;
    HardmaxConstants constants = {};
    constants.output_base = output.base;
    constants.first_position = static_cast<uint32_t>(part.first_position);
    constants.record_count = static_cast<uint32_t>(records.count);
    constants.record_stride = static_cast<uint32_t>(records.stride);
    SetDims(part.kept, constants.kept, constants.kept_rank);
    SetDims(part.reduced, constants.reduced, constants.reduced_rank);
    SetSharing(dispatch, constants, storing.work, ChooseSharing(storing.work, options));
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
