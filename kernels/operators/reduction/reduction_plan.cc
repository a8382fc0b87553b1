// reduce, argmin and argmax: one reduction into the output.
#include "kernels/operators/reduction/reduction_plan.h"

namespace opmill {

Folding ArgReduceFolding(DataType input, Extreme extreme, AxisDirection direction) {
  return {.shader = "arg_reduce",
          .input_type = input,
          .macros = {{"LARGEST", extreme == Extreme::kMax ? 1u : 0u}},
          .from_last = direction == AxisDirection::kDecreasing};
}

namespace {

absl::Status PlanArgReduce(PlanBuilder& builder, const ArgReduceDesc& desc) {
  FillGaps(builder, BufferRole::Output(), *desc.output);
  const IterationSpace space =
      MakeIterationSpace(desc.input, desc.axes, *desc.output, nullptr, ReducedOrder::kRowMajor);
  AddReduction(builder, ArgReduceFolding(desc.input.data_type, desc.extreme, desc.axis_direction),
               space, {.type = desc.output->data_type});
  return absl::OkStatus();
}

}  // namespace

absl::Status PlanArg(PlanBuilder& builder, const OperatorDesc& desc) {
  return PlanArgReduce(builder, ArgReduceDesc::From(desc));
}

absl::Status PlanReduce(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const ReduceDesc desc = ReduceDesc::From(operator_desc);
  if (GivesIndices(desc.function)) return PlanArgReduce(builder, desc.AsArgReduce());
  FillGaps(builder, BufferRole::Output(), *desc.output);
  const IterationSpace space =
      MakeIterationSpace(desc.input, desc.axes, *desc.output, nullptr, ReducedOrder::kAny);
  const Folding folding = {.shader = "reduce",
                           .input_type = desc.input.data_type,
                           .macros = {{"FUNCTION", static_cast<uint32_t>(desc.function)}},
                           .adds_floats = IsFloat(desc.input.data_type) &&
                                          desc.function != ReduceFunction::kMax &&
                                          desc.function != ReduceFunction::kMin};
  AddReduction(builder, folding, space, {.type = desc.output->data_type});
  return absl::OkStatus();
}

}  // namespace opmill
