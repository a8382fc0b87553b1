// hardmax: finds the first maximum of every result, zeros the output, and stores the ones.
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_walk.h"
#include "shaders/hardmax_constants.h"

namespace opmill {

absl::Status PlanHardmax(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const HardmaxDesc desc = HardmaxDesc::From(operator_desc);
  const DataType type = desc.input.data_type;
  const PlanOptions& options = builder.options();
  builder.Add(Fill{.role = BufferRole::Output(), .size_bytes = RequiredBytes(*desc.output)});
  // Packed, like the output of ARGMAX.
  const TensorDesc positions = {.data_type = DataType::kUint32,
                                .sizes = ReducedSizes(desc.input.sizes, desc.axes)};
  const uint64_t position_bytes = ElementBytes(positions.data_type);
  const uint64_t first_position =
      builder.ReserveRecords(CeilDiv(RequiredBytes(positions), kVectorBytes)) / position_bytes;
  IterationSpace search =
      MakeIterationSpace(desc.input, desc.axes, positions, nullptr, ReducedOrder::kRowMajor);
  search.output_base = first_position;
  AddReduction(builder, ArgReduceFolding(type, Extreme::kMax, AxisDirection::kIncreasing), search,
               {.role = BufferRole::Scratch(), .type = positions.data_type});
  builder.NextPass();
  const uint32_t kernel = builder.Kernel(
      {.shader = "hardmax",
       .entry = "ScatterOnes",
       .macros = {{"DATA_TYPE", static_cast<uint32_t>(type)}, {"THREADS", options.threads}}});
  IterationSpace ones =
      MakeIterationSpace(desc.input, desc.axes, *desc.output, &positions, ReducedOrder::kRowMajor);
  ones.output2_base = first_position;
  // The limits of the input do not apply here: only the views of the output and the positions are
  // used.
  SliceLimits limits = LimitsFor(type, type, options);
  limits.input_elements = ~uint64_t{0};
  limits.index_elements = (options.max_view_elements - 1) * kVectorBytes / position_bytes;
  for (const IterationSpace& slice : SliceKept(ones, limits)) {
    for (const IterationSpace& part : SliceReduced(slice, limits)) {
      if (builder.full()) return absl::OkStatus();
      const PlacedView output = WriteElements(BufferRole::Output(), type, part.output_base,
                                              OutputSpan(part.kept) + OutputSpan(part.reduced));
      const PlacedView found = ReadElements(positions.data_type, part.output2_base,
                                            IndexSpan(part.kept), BufferRole::Scratch());
      const uint64_t results = part.results();
      Dispatch dispatch;
      dispatch.kernel = kernel;
      dispatch.reads[0] = found.view;
      dispatch.writes[0] = output.view;
      HardmaxConstants constants = {};
      constants.positions_base = found.base;
      constants.output_base = output.base;
      constants.first_position = static_cast<uint32_t>(part.index_base);
      constants.position_count = static_cast<uint32_t>(part.index_count());
      SetDims(part.kept, constants.kept, constants.kept_rank);
      SetDims(part.reduced, constants.reduced, constants.reduced_rank);
      dispatch.constants = constants;
      DealUnits(dispatch, results, TurnsOf(results, 1, options), options.threads);
      builder.Add(std::move(dispatch));
    }
  }
  return absl::OkStatus();
}

}  // namespace opmill
