#include <memory>
#include <utility>

#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/fold_program.h"

namespace opmill {

std::unique_ptr<const CpuProgram> CpuHardmax(const OperatorDesc& operator_desc) {
  const HardmaxDesc desc = HardmaxDesc::From(operator_desc);
  FoldWork work = {.function = ReduceFunction::kArgMax,
                   .type = desc.input.data_type,
                   .is_hardmax = true,
                   .result_bytes = ElementBytes(desc.output->data_type)};
  SplitDims(desc.input, *desc.output, nullptr, desc.axes, work.kept, work.reduced);
  return MakeFoldProgram(std::move(work));
}

}  // namespace opmill
