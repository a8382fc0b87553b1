// The descriptors of gemm and convolution in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_DESC_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_DESC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/dims/dims.h"

namespace opmill {

extern const OperatorSchema kGemmSchema;
extern const OperatorSchema kConvolutionSchema;

// The tensors of a product, in the order of the strides of its dimensions. Of a convolution, A is
// the filter, B the input, and the addend the bias.
enum ProductTensor : size_t { kProductA, kProductB, kProductAddend, kProductOutput };
using ProductDims = Dims<4>;

// DML_MATRIX_TRANSFORM
enum class MatrixTransform : uint32_t { kNone = 0, kTranspose = 1 };

// DML_OPERATOR_GEMM: output = alpha * A * B + beta * C, for each element of the dimensions before
// the last two.
struct GemmDesc {
  TensorDesc a;
  TensorDesc b;
  std::optional<TensorDesc> c;
  std::optional<TensorDesc> output;  // default: packed
  MatrixTransform trans_a = MatrixTransform::kNone;
  MatrixTransform trans_b = MatrixTransform::kNone;
  float alpha = 1;
  float beta = 1;

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  static GemmDesc From(const OperatorDesc& desc);

  // null if nothing is added
  const TensorDesc* addend() const { return c.has_value() && beta != 0 ? &*c : nullptr; }
  // Those before the last two. The descriptor is validated.
  ProductDims BatchDims() const;
};

// A matrix of a tensor whose last two dimensions are its rows and columns.
struct MatrixLayout {
  uint32_t rows = 1;
  uint32_t columns = 1;
  uint32_t row_stride = 0;
  uint32_t column_stride = 0;
};
MatrixLayout LayoutOf(const TensorDesc& tensor, MatrixTransform transform = MatrixTransform::kNone);

// DML_CONVOLUTION_MODE
enum class ConvolutionMode : uint32_t { kConvolution = 0, kCrossCorrelation = 1 };
// DML_CONVOLUTION_DIRECTION
enum class ConvolutionDirection : uint32_t { kForward = 0, kBackward = 1 };

// DML_OPERATOR_CONVOLUTION. Forward, output o along a spatial dimension is the sum over the taps t
// of filter[t] * input[o * stride + t * dilation - start_padding]. Backward, input i adds filter[t]
// * input[i] to output i * stride + t * dilation - start_padding. Mode kConvolution reverses the
// filter.
struct ConvolutionDesc {
  TensorDesc input;   // [batches, input channels, spatial sizes...]
  TensorDesc filter;  // [output channels, input channels of a group, ...]; backward [input
                      // channels, output channels of a group, ...]
  std::optional<TensorDesc> bias;    // [1, output channels, 1...]
  std::optional<TensorDesc> output;  // default: packed
  ConvolutionMode mode = ConvolutionMode::kCrossCorrelation;
  ConvolutionDirection direction = ConvolutionDirection::kForward;
  // One for each spatial dimension. An empty list stands for ones, or for no padding.
  std::vector<uint32_t> strides = {};
  std::vector<uint32_t> dilations = {};
  std::vector<uint32_t> start_padding = {};
  std::vector<uint32_t> end_padding = {};
  std::vector<uint32_t> output_padding = {};
  uint32_t group_count = 1;

  operator OperatorDesc() const;  // NOLINT(google-explicit-constructor): equivalent forms
  // The lists have their numbers.
  static ConvolutionDesc From(const OperatorDesc& desc);

  bool is_backward() const { return direction == ConvolutionDirection::kBackward; }
};

// A spatial dimension.
struct ConvolutionAxis {
  uint32_t input = 1;  // sizes
  uint32_t filter = 1;
  uint32_t output = 1;
  uint32_t stride = 1;
  uint32_t dilation = 1;
  uint32_t start_padding = 0;
  uint32_t input_stride = 0;  // of the tensors, in elements
  uint32_t filter_stride = 0;
  uint32_t output_stride = 0;
};

// A validated convolution, with three spatial dimensions: those that it lacks have size 1.
struct ConvolutionShape {
  uint32_t batches = 1;
  uint32_t groups = 1;
  uint32_t input_channels = 1;  // of a group
  uint32_t output_channels = 1;
  uint32_t input_batch_stride = 0;
  uint32_t input_channel_stride = 0;
  // Of the filter: from output channel to output channel of a group, and so on.
  uint32_t filter_output_stride = 0;
  uint32_t filter_input_stride = 0;
  uint64_t filter_group_stride = 0;
  uint32_t bias_stride = 0;
  uint32_t output_batch_stride = 0;
  uint32_t output_channel_stride = 0;
  bool reverses_filter = false;
  std::array<ConvolutionAxis, 3> axes;

  ProductDims BatchDims() const;  // batches and groups
  uint64_t taps() const { return uint64_t{axes[0].filter} * axes[1].filter * axes[2].filter; }
  // The offset in the filter of a tap along a dimension.
  uint64_t FilterOffset(size_t axis, uint32_t tap) const {
    const ConvolutionAxis& along = axes[axis];
    return uint64_t{reverses_filter ? along.filter - 1 - tap : tap} * along.filter_stride;
  }
};
ConvolutionShape ShapeOf(const ConvolutionDesc& validated);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_DESC_H_
