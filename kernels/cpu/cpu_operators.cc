#include "kernels/cpu/cpu_operators.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/cleared_program.h"
#include "kernels/cpu/fold_program.h"
#include "kernels/cpu/sliced_program.h"
#include "kernels/cpu/top_k_program.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/program/lower.h"

namespace opmill {

#define OPMILL_LOWERED_FAMILY(Name)
#define OPMILL_FAMILY(Name) std::unique_ptr<const CpuProgram> Cpu##Name(const OperatorDesc& desc);
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY

namespace {

CpuElement ElementOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return CpuElement::kF16;
    case DataType::kInt64:
      return CpuElement::kI64;
    case DataType::kInt32:
      return CpuElement::kI32;
    case DataType::kInt16:
      return CpuElement::kI16;
    case DataType::kInt8:
      return CpuElement::kI8;
    case DataType::kUint64:
      return CpuElement::kU64;
    case DataType::kUint32:
      return CpuElement::kU32;
    case DataType::kUint16:
      return CpuElement::kU16;
    case DataType::kUint8:
      return CpuElement::kU8;
    default:
      return CpuElement::kF32;
  }
}

CpuFunction FunctionOf(ReduceFunction function) {
  switch (function) {
    case ReduceFunction::kArgMax:
      return CpuFunction::kArgMax;
    case ReduceFunction::kArgMin:
      return CpuFunction::kArgMin;
    case ReduceFunction::kAverage:
      return CpuFunction::kAverage;
    case ReduceFunction::kL1:
      return CpuFunction::kL1;
    case ReduceFunction::kL2:
      return CpuFunction::kL2;
    case ReduceFunction::kLogSum:
      return CpuFunction::kLogSum;
    case ReduceFunction::kLogSumExp:
      return CpuFunction::kLogSumExp;
    case ReduceFunction::kMax:
      return CpuFunction::kMax;
    case ReduceFunction::kMin:
      return CpuFunction::kMin;
    case ReduceFunction::kMultiply:
      return CpuFunction::kMultiply;
    case ReduceFunction::kSumSquare:
      return CpuFunction::kSumSquare;
    default:
      return CpuFunction::kSum;
  }
}

// Dimensions along `axes` go to `reduced`, the others to `kept`. Sizes of 1 are dropped.
void SplitDims(const TensorDesc& input, const TensorDesc& output, const TensorDesc* indices,
               const std::vector<uint32_t>& axes, std::vector<WorkDim>& kept,
               std::vector<WorkDim>& reduced) {
  const std::vector<uint32_t> in = EffectiveStrides(input);
  const std::vector<uint32_t> out = EffectiveStrides(output);
  const std::vector<uint32_t> index = EffectiveStrides(indices != nullptr ? *indices : output);
  for (uint32_t axis = 0; axis < input.sizes.size(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (input.sizes[axis] == 1) continue;
    (is_reduced ? reduced : kept).push_back({input.sizes[axis], in[axis], out[axis], index[axis]});
  }
}

std::unique_ptr<const CpuProgram> Fold(CpuFunction function, const TensorDesc& input,
                                       const TensorDesc& output, const std::vector<uint32_t>& axes,
                                       bool last_wins, bool is_hardmax) {
  FoldWork work = {.function = function,
                   .element = ElementOf(input.data_type),
                   .last_wins = last_wins,
                   .is_hardmax = is_hardmax,
                   .result_bytes = ElementBytes(output.data_type)};
  SplitDims(input, output, nullptr, axes, work.kept, work.reduced);
  return MakeFoldProgram(std::move(work));
}

using CpuPlanner = std::unique_ptr<const CpuProgram> (*)(const OperatorDesc&);
constexpr CpuPlanner kCpuPlanners[] = {
#define OPMILL_LOWERED_FAMILY(Name) nullptr,
#define OPMILL_FAMILY(Name) &Cpu##Name,
#include "kernels/operators/operator_list.inc"
#undef OPMILL_FAMILY
};

}  // namespace

std::unique_ptr<const CpuProgram> CpuArg(const OperatorDesc& operator_desc) {
  const ArgReduceDesc desc = ArgReduceDesc::From(operator_desc);
  return Fold(desc.extreme == Extreme::kMin ? CpuFunction::kArgMin : CpuFunction::kArgMax,
              desc.input, *desc.output, desc.axes,
              desc.axis_direction == AxisDirection::kDecreasing, false);
}

std::unique_ptr<const CpuProgram> CpuReduce(const OperatorDesc& operator_desc) {
  const ReduceDesc desc = ReduceDesc::From(operator_desc);
  return Fold(FunctionOf(desc.function), desc.input, *desc.output, desc.axes, false, false);
}

std::unique_ptr<const CpuProgram> CpuHardmax(const OperatorDesc& operator_desc) {
  const HardmaxDesc desc = HardmaxDesc::From(operator_desc);
  return Fold(CpuFunction::kArgMax, desc.input, *desc.output, desc.axes, false, true);
}

std::unique_ptr<const CpuProgram> CpuTopK(const OperatorDesc& operator_desc) {
  const TopKDesc desc = TopKDesc::From(operator_desc);
  TopKWork work = {.element = ElementOf(desc.input.data_type),
                   .largest = desc.axis_direction == AxisDirection::kDecreasing,
                   .index_bytes = ElementBytes(desc.output_indices->data_type),
                   .k = desc.k};
  std::vector<WorkDim> axis;
  SplitDims(desc.input, *desc.output_values, &*desc.output_indices, {desc.axis}, work.kept, axis);
  if (desc.k == 1) {
    return MakeFoldProgram({.function = work.largest ? CpuFunction::kArgMax : CpuFunction::kArgMin,
                            .element = work.element,
                            .nan_is_last = !work.largest,
                            .is_top_1 = true,
                            .result_bytes = work.index_bytes,
                            .kept = std::move(work.kept),
                            .reduced = std::move(axis)});
  }
  if (!axis.empty()) work.axis = axis[0];
  return MakeTopKProgram(std::move(work));
}

std::unique_ptr<const CpuProgram> MakeCpuProgram(const OperatorDesc& validated) {
  if (IsLowered(validated)) return MakeSlicedProgram(validated);
  std::unique_ptr<const CpuProgram> program =
      kCpuPlanners[static_cast<size_t>(validated.schema->family)](validated);
  bool writes_all = program->fills_outputs();
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc& output : OutputsOf(validated)) {
    output_bytes.push_back(RequiredBytes(output));
    writes_all = writes_all && IsPacked(output) && SpannedBytes(output) % 4 == 0;
  }
  if (writes_all) return program;
  return MakeClearedProgram(std::move(program), std::move(output_bytes));
}

}  // namespace opmill
