#include <bit>

#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/matrix/matrix_plan.h"

namespace opmill {
namespace {

// Backward, output o meets input (o + padding - t * dilation) / stride.
MatrixAxis AxisOf(const ConvolutionAxis& axis, bool is_backward, bool reverses_filter) {
  MatrixAxis to = {.outputs = axis.output,
                   .inputs = axis.input,
                   .taps = axis.filter,
                   .step = is_backward ? 1 : axis.stride,
                   .tap_step = is_backward ? 0 - axis.dilation : axis.dilation,
                   .padding = is_backward ? 0 - axis.start_padding : axis.start_padding,
                   .spread = is_backward ? axis.stride : 1,
                   .input_stride = axis.input_stride,
                   .filter_stride = axis.filter_stride,
                   .output_stride = axis.output_stride};
  if (reverses_filter) to.filter_stride = 0 - axis.filter_stride;
  return to;
}

}  // namespace

absl::Status PlanConvolution(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const ConvolutionDesc desc = ConvolutionDesc::From(operator_desc);
  const ConvolutionShape shape = ShapeOf(desc);
  FillGaps(builder, BufferRole::Output(), *desc.output);
  MatrixProduct product = {.type = desc.input.data_type,
                           .is_image = true,
                           .divides_columns = false,
                           .dims = shape.BatchDims()};
  product.dims.push_back(
      {shape.output_channels,
       {shape.filter_output_stride, 0, shape.bias_stride, shape.output_channel_stride}});
  MatrixTensor& filter = product.tensors[kProductA];
  MatrixTensor& input = product.tensors[kProductB];
  MatrixTensor& output = product.tensors[kProductOutput];
  filter = {.input = 1, .span = uint64_t{shape.input_channels - 1} * shape.filter_input_stride};
  input = {.input = 0, .span = uint64_t{shape.input_channels - 1} * shape.input_channel_stride};
  MatrixConstants& constants = product.constants;
  if (desc.bias.has_value()) {
    product.tensors[kProductAddend].input = 2;
    constants.has_addend = 1;
    constants.addend_row_stride = shape.bias_stride;
  }
  uint64_t columns = 1;
  uint64_t reversed = 0;  // where the first tap of a reversed filter lies
  for (size_t i = 0; i < 3; ++i) {
    const ConvolutionAxis& axis = shape.axes[i];
    constants.axes[i] = AxisOf(axis, desc.is_backward(), shape.reverses_filter);
    product.is_spread = product.is_spread || constants.axes[i].spread != 1;
    columns *= axis.output;
    filter.span += uint64_t{axis.filter - 1} * axis.filter_stride;
    input.span += uint64_t{axis.input - 1} * axis.input_stride;
    output.span += uint64_t{axis.output - 1} * axis.output_stride;
    reversed += shape.FilterOffset(i, 0);
  }
  product.dims.push_back({.size = columns});
  filter.first = reversed;
  constants.depth = static_cast<uint32_t>(shape.taps() * shape.input_channels);
  constants.a_row_stride = shape.filter_output_stride;
  constants.a_depth_stride = shape.filter_input_stride;
  constants.b_depth_stride = shape.input_channel_stride;
  constants.output_row_stride = shape.output_channel_stride;
  constants.b_runs_along_columns = 1;
  constants.alpha = constants.beta = std::bit_cast<uint32_t>(1.0f);
  return PlanProduct(builder, product);
}

}  // namespace opmill
