#include "kernels/cpu/cpu_operators.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cleared_program.h"
#include "kernels/cpu/fold_program.h"
#include "kernels/cpu/top_k_program.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {
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

// One dimension each, those along `axes` in `reduced`, without sizes of 1.
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

struct Translation {
  CpuOperator result;

  std::unique_ptr<const CpuProgram> Fold(CpuFunction function, const TensorDesc& input,
                                         const TensorDesc& output,
                                         const std::vector<uint32_t>& axes, bool last_wins,
                                         bool is_hardmax) {
    FoldWork work = {.function = function,
                     .element = ElementOf(input.data_type),
                     .last_wins = last_wins,
                     .is_hardmax = is_hardmax,
                     .result_bytes = ElementBytes(output.data_type)};
    SplitDims(input, output, nullptr, axes, work.kept, work.reduced);
    return MakeFoldProgram(std::move(work));
  }

  void Finish(const TensorDesc& input, const std::vector<const TensorDesc*>& outputs,
              std::unique_ptr<const CpuProgram> program, bool writes_all) {
    result.input_bytes = RequiredBytes(input);
    for (const TensorDesc* output : outputs) {
      result.output_bytes.push_back(RequiredBytes(*output));
      writes_all = writes_all && IsPacked(*output) && SpannedBytes(*output) % 4 == 0;
    }
    result.program = writes_all ? std::move(program)
                                : MakeClearedProgram(std::move(program), result.output_bytes);
  }

  void operator()(const ArgReduceDesc& desc) {
    Finish(desc.input, {&*desc.output},
           Fold(desc.extreme == Extreme::kMin ? CpuFunction::kArgMin : CpuFunction::kArgMax,
                desc.input, *desc.output, desc.axes,
                desc.axis_direction == AxisDirection::kDecreasing, false),
           true);
  }
  void operator()(const ReduceDesc& desc) {
    Finish(desc.input, {&*desc.output},
           Fold(FunctionOf(desc.function), desc.input, *desc.output, desc.axes, false, false),
           true);
  }
  void operator()(const HardmaxDesc& desc) {
    Finish(desc.input, {&*desc.output},
           Fold(CpuFunction::kArgMax, desc.input, *desc.output, desc.axes, false, true), false);
  }
  void operator()(const TopKDesc& desc) {
    TopKWork work = {.element = ElementOf(desc.input.data_type),
                     .largest = desc.axis_direction == AxisDirection::kDecreasing,
                     .index_bytes = ElementBytes(desc.output_indices->data_type),
                     .k = desc.k};
    std::vector<WorkDim> axis;
    SplitDims(desc.input, *desc.output_values, &*desc.output_indices, {desc.axis}, work.kept, axis);
    if (!axis.empty()) work.axis = axis[0];
    Finish(desc.input, {&*desc.output_values, &*desc.output_indices},
           MakeTopKProgram(std::move(work)), true);
  }
};

}  // namespace

CpuOperator MakeCpuOperator(const OperatorDesc& validated) {
  Translation translation;
  std::visit(translation, validated);
  return std::move(translation.result);
}

absl::StatusOr<RunBuffers> FindBuffers(const CpuOperator& cpu_operator, const Bindings& bindings) {
  const auto check = [](absl::string_view name, HostBuffer* buffer, uint64_t required_bytes) {
    const uint64_t size = buffer == nullptr ? 0 : buffer->bytes().size();
    if (buffer != nullptr && size >= required_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", size, " bytes; its tensor needs ", required_bytes, "."));
  };
  if (bindings.outputs.size() != cpu_operator.output_bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("The operator has ", cpu_operator.output_bytes.size(), " outputs, but ",
                     bindings.outputs.size(), " are given."));
  }
  absl::Status status = check("The input", bindings.input.get(), cpu_operator.input_bytes);
  RunBuffers buffers;
  for (size_t i = 0; i < bindings.outputs.size(); ++i) {
    HostBuffer* output = bindings.outputs[i].get();
    status.Update(check(absl::StrCat("outputs[", i, "]"), output, cpu_operator.output_bytes[i]));
    if (status.ok()) buffers.outputs[i] = output->bytes().data();
  }
  if (!status.ok()) return status;
  buffers.input = bindings.input->bytes().data();
  return buffers;
}

}  // namespace opmill
