#include <memory>
#include <utility>
#include <vector>

#include "kernels/operators/reduction/fold_program.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/operators/top_k/top_k_program.h"

namespace opmill {

std::unique_ptr<const CpuProgram> CpuTopK(const OperatorDesc& operator_desc) {
  const TopKDesc desc = TopKDesc::From(operator_desc);
  TopKWork work = {.type = desc.input.data_type,
                   .largest = desc.axis_direction == AxisDirection::kDecreasing,
                   .index_bytes = ElementBytes(desc.output_indices->data_type),
                   .k = desc.k};
  std::vector<WorkDim> axis;
  SplitDims(desc.input, *desc.output_values, &*desc.output_indices, {desc.axis}, work.kept, axis);
  if (desc.k == 1) {
    return MakeFoldProgram(
        {.function = work.largest ? ReduceFunction::kArgMax : ReduceFunction::kArgMin,
         .type = work.type,
         .nan_is_last = !work.largest,
         .is_top_1 = true,
         .result_bytes = work.index_bytes,
         .kept = std::move(work.kept),
         .reduced = std::move(axis)});
  }
  if (!axis.empty()) work.axis = axis[0];
  return MakeTopKProgram(std::move(work));
}

}  // namespace opmill
