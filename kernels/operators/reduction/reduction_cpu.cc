#include <memory>

#include "kernels/operators/reduction/fold_program.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {

std::unique_ptr<CpuProgram> CpuReduce(const OperatorDesc& operator_desc) {
  const ReduceDesc desc = ReduceDesc::From(operator_desc);
  const IterationSpace space = SplitDims(desc.input, desc.axes, *desc.output);
  const FoldWork work = InMemoryOrder({.function = desc.function,
                                       .type = desc.input.data_type,
                                       .is_batched = operator_desc.is_batched,
                                       .kept = space.kept,
                                       .reduced = space.reduced});
  return MakeFoldProgram(work, MakeResultsOutput(work, ElementBytes(desc.output->data_type)));
}

std::unique_ptr<CpuProgram> CpuArg(const OperatorDesc& operator_desc) {
  const ArgReduceDesc desc = ArgReduceDesc::From(operator_desc);
  const IterationSpace space = SplitDims(desc.input, desc.axes, *desc.output);
  const FoldWork work =
      InMemoryOrder({.function = desc.extreme == Extreme::kMin ? ReduceFunction::kArgMin
                                                               : ReduceFunction::kArgMax,
                     .type = desc.input.data_type,
                     .last_wins = desc.axis_direction == AxisDirection::kDecreasing,
                     .kept = space.kept,
                     .reduced = space.reduced});
  return MakeFoldProgram(work, MakeResultsOutput(work, ElementBytes(desc.output->data_type)));
}

}  // namespace opmill
