#include <bit>

#include "kernels/operators/matrix/convolution_desc.h"
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
                           .batches = {shape.batches, shape.groups},
                           .rows = shape.output_channels};
  MatrixConstants& constants = product.constants;
  product.a = {.input = 1,
               .batch_strides = {0, shape.filter_group_stride},
               .row_stride = shape.filter_output_stride,
               .span = uint64_t{shape.input_channels - 1} * shape.filter_input_stride};
  product.b = {.input = 0,
               .batch_strides = {shape.input_batch_stride,
                                 uint64_t{shape.input_channels} * shape.input_channel_stride},
               .span = uint64_t{shape.input_channels - 1} * shape.input_channel_stride};
  product.output = {.batch_strides = {shape.output_batch_stride, uint64_t{shape.output_channels} *
                                                                     shape.output_channel_stride},
                    .row_stride = shape.output_channel_stride};
  constants.has_addend = desc.bias.has_value() ? 1 : 0;
  if (desc.bias.has_value()) {
    product.addend = {.input = 2,
                      .batch_strides = {0, uint64_t{shape.output_channels} * shape.bias_stride},
                      .row_stride = shape.bias_stride};
    constants.addend_row_stride = shape.bias_stride;
  }
  uint64_t reversed = 0;  // where the first tap of a reversed filter lies
  for (size_t i = 0; i < 3; ++i) {
    const ConvolutionAxis& axis = shape.axes[i];
    constants.axes[i] = AxisOf(axis, desc.is_backward(), shape.reverses_filter);
    product.is_spread = product.is_spread || constants.axes[i].spread != 1;
    product.columns *= axis.output;
    product.a.span += uint64_t{axis.filter - 1} * axis.filter_stride;
    product.b.span += uint64_t{axis.input - 1} * axis.input_stride;
    product.output.span += uint64_t{axis.output - 1} * axis.output_stride;
    reversed += shape.FilterOffset(i, 0);
  }
  product.a.first = reversed;
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
