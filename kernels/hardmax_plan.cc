// hardmax: find the first maximum of every result, zero the output, put the ones.
#include "kernels/operator_plans.h"

namespace opmill {

void PlanHardmax(PlanBuilder& builder, const HardmaxDesc& desc) {
  const DataType type = desc.input.data_type;
  builder.Add(Fill{.role = BufferRole::kOutput0, .size_bytes = RequiredBytes(*desc.output)});
  const IterationSpace space =
      MakeIterationSpace(desc.input, desc.axes, *desc.output, nullptr, ReducedOrder::kRowMajor);
  const std::vector<ReducedSlice> slices =
      AddReduction(builder, ArgReduceFolding(type, Extreme::kMax, AxisDirection::kIncreasing),
                   space, type, Results::kRecords);
  builder.NextPass();
  const uint32_t threads = builder.options().threads;
  const uint32_t kernel = builder.Kernel(
      {.shader = "hardmax",
       .entry = "ScatterOnes",
       .macros = {{"DATA_TYPE", static_cast<uint32_t>(type)}, {"THREADS", threads}}});
  // The part of the input that was read does not matter here: only the output's views do.
  SliceLimits limits = LimitsFor(type, type, builder.options());
  limits.input_elements = ~uint64_t{0};
  for (const ReducedSlice& slice : slices) {
    if (builder.full()) break;
    const uint64_t results = slice.space.results();
    for (const IterationSpace& part : SliceReduced(slice.space, limits)) {
      const PlacedView output = WriteElements(BufferRole::kOutput0, type, part.output_base,
                                              OutputSpan(part.kept) + OutputSpan(part.reduced));
      Dispatch dispatch;
      dispatch.kernel = kernel;
      dispatch.reads[0] = Records(slice.records_offset, results);
      dispatch.writes[0] = output.view;
      dispatch.constants.output_base = output.base;
      dispatch.constants.index_base = static_cast<uint32_t>(part.index_base);
      dispatch.constants.index_count = static_cast<uint32_t>(part.index_count());
      dispatch.constants.unit_count = static_cast<uint32_t>(results);
      SetDims(dispatch.constants, part, part.kept.size(), part.reduced.size());
      SetGroups(dispatch, CeilDiv(results, threads));
      builder.Add(std::move(dispatch));
    }
  }
}

}  // namespace opmill
