// reduce, argmin and argmax: one reduction into the output.
#include "kernels/operators/reduction/reduction_walk.h"
#include "kernels/plan/operator_plans.h"

namespace opmill {

Folding ArgReduceFolding(DataType input, Extreme extreme, AxisDirection direction) {
  return {.shader = "arg_reduce",
          .input_type = input,
          .macros = {{"LARGEST", extreme == Extreme::kMax ? 1u : 0u}, {"NAN_FIRST", 1}},
          .finds_positions = true,
          .from_last = direction == AxisDirection::kDecreasing};
}

void PlanArgReduce(PlanBuilder& builder, const ArgReduceDesc& desc) {
  FillGaps(builder, BufferRole::kOutput0, *desc.output);
  builder.NextPass();
  const IterationSpace space =
      MakeIterationSpace(desc.input, desc.axes, *desc.output, nullptr, ReducedOrder::kRowMajor);
  AddReduction(builder, ArgReduceFolding(desc.input.data_type, desc.extreme, desc.axis_direction),
               space, {.type = desc.output->data_type});
}

void PlanReduce(PlanBuilder& builder, const ReduceDesc& desc) {
  if (desc.function == ReduceFunction::kArgMax || desc.function == ReduceFunction::kArgMin) {
    PlanArgReduce(builder, {.extreme = desc.function == ReduceFunction::kArgMax ? Extreme::kMax
                                                                                : Extreme::kMin,
                            .input = desc.input,
                            .output = desc.output,
                            .axes = desc.axes});
    return;
  }
  FillGaps(builder, BufferRole::kOutput0, *desc.output);
  builder.NextPass();
  const IterationSpace space =
      MakeIterationSpace(desc.input, desc.axes, *desc.output, nullptr, ReducedOrder::kAny);
  const Folding folding = {.shader = "reduce",
                           .input_type = desc.input.data_type,
                           .macros = {{"FUNCTION", static_cast<uint32_t>(desc.function)}}};
  AddReduction(builder, folding, space, {.type = desc.output->data_type});
}

}  // namespace opmill
