#include <memory>
#include <utility>

#include "kernels/operators/reduction/fold_program.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {

std::unique_ptr<const CpuProgram> CpuReduce(const OperatorDesc& operator_desc) {
  const ReduceDesc desc = ReduceDesc::From(operator_desc);
  FoldWork work = {.function = desc.function,
                   .type = desc.input.data_type,
                   .result_bytes = ElementBytes(desc.output->data_type)};
  SplitDims(desc.input, *desc.output, nullptr, desc.axes, work.kept, work.reduced);
  return MakeFoldProgram(std::move(work));
}

std::unique_ptr<const CpuProgram> CpuArg(const OperatorDesc& operator_desc) {
  const ArgReduceDesc desc = ArgReduceDesc::From(operator_desc);
  FoldWork work = {
      .function = desc.extreme == Extreme::kMin ? ReduceFunction::kArgMin : ReduceFunction::kArgMax,
      .type = desc.input.data_type,
      .last_wins = desc.axis_direction == AxisDirection::kDecreasing,
      .result_bytes = ElementBytes(desc.output->data_type)};
  SplitDims(desc.input, *desc.output, nullptr, desc.axes, work.kept, work.reduced);
  return MakeFoldProgram(std::move(work));
}

}  // namespace opmill
