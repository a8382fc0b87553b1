// A convolution is the product of its filter, a row for each output channel, and the patches of the
// image. A backward one is a forward one for each phase of the outputs, with the taps that reach
// it.
#include <algorithm>
#include <utility>

#include "kernels/base/rounding.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {
namespace {

// Backward convolutions with more phases read an image that is spread with zeros.
constexpr uint64_t kMostPhases = 64;

struct Tap {
  uint32_t filter = 0;
  int64_t position = 0;
};

// A dimension of a forward convolution, or of one phase of a backward one.
struct Phase {
  ImageAxis image;
  uint64_t first_output = 0;
  uint64_t output_step = 1;
  std::vector<Tap> taps;
};

std::vector<Phase> PhasesOf(const ConvolutionAxis& axis, bool is_backward, bool is_spread) {
  const int64_t stride = axis.stride;
  const uint64_t count =
      is_backward && !is_spread ? std::min<uint64_t>(axis.stride, axis.output) : 1;
  std::vector<Phase> phases(count);
  for (uint64_t p = 0; p < count; ++p) {
    Phase& phase = phases[p];
    phase.image = {.size = axis.input, .stride = axis.input_stride};
    if (!is_backward) phase.image.step = axis.stride;
    if (is_backward && is_spread) phase.image.spread = axis.stride;
    phase.first_output = p;
    phase.output_step = is_backward && !is_spread ? axis.stride : 1;
    phase.image.outputs = CeilDiv(axis.output - p, phase.output_step);
    for (uint32_t t = 0; t < axis.filter; ++t) {
      const int64_t dilated = int64_t{t} * axis.dilation;
      const int64_t moved = static_cast<int64_t>(p) + axis.start_padding - dilated;
      if (!is_backward) {
        phase.taps.push_back({t, dilated - axis.start_padding});
      } else if (is_spread) {
        phase.taps.push_back({t, moved});
      } else if (moved % stride == 0) {
        phase.taps.push_back({t, moved / stride});
      }
    }
  }
  return phases;
}

// At least one dimension.
Dims<1> Merged(Dims<1> dims) {
  MergeDims(dims);
  if (dims.empty()) dims.emplace_back();
  return dims;
}

Dims<1> PixelsOf(const ProductImage& image) {
  Dims<1> dims;
  for (const ImageAxis& axis : image.axes) dims.push_back({axis.size, {axis.stride}});
  return Merged(std::move(dims));
}

// Whether the patches are the image itself.
bool IsPlain(const ProductImage& image) {
  if (image.taps.size() != 1) return false;
  for (size_t i = 0; i < 3; ++i) {
    const ImageAxis& axis = image.axes[i];
    if (image.taps[0][i] != 0 || axis.step != 1 || axis.spread != 1 || axis.outputs != axis.size) {
      return false;
    }
  }
  return PixelsOf(image).size() == 1;
}

// Channels and taps with one stride become one dimension.
void SimplifyDepth(ProductOperand& operand) {
  const std::vector<uint64_t>& offsets = operand.tap_offsets;
  const uint64_t stride = offsets.size() > 1 ? offsets[1] - offsets[0] : operand.depth_stride;
  if (operand.depth_stride != offsets.size() * stride) return;
  for (size_t t = 0; t < offsets.size(); ++t) {
    if (offsets[t] != t * stride) return;
  }
  operand.depth_stride = stride;
  operand.tap_offsets.clear();
}

ProductWork WorkOf(const ConvolutionShape& shape, const std::array<const Phase*, 3>& phases) {
  ProductWork work = {.batches = shape.BatchDims(),
                      .rows = shape.output_channels,
                      .a = {.input = 1,
                            .stride = shape.filter_output_stride,
                            .depth_stride = shape.filter_input_stride},
                      .b = {.input = 0},
                      .output_row_stride = shape.output_channel_stride};
  ProductImage image = {.channel_stride = shape.input_channel_stride};
  for (const Tap& z : phases[0]->taps) {
    for (const Tap& y : phases[1]->taps) {
      for (const Tap& x : phases[2]->taps) {
        image.taps.push_back({z.position, y.position, x.position});
        work.a.tap_offsets.push_back(shape.FilterOffset(0, z.filter) +
                                     shape.FilterOffset(1, y.filter) +
                                     shape.FilterOffset(2, x.filter));
      }
    }
  }
  work.depth = image.taps.size() * shape.input_channels;
  SimplifyDepth(work.a);
  Dims<1> outputs;
  for (size_t i = 0; i < 3; ++i) {
    const ConvolutionAxis& axis = shape.axes[i];
    image.axes[i] = phases[i]->image;
    work.columns *= phases[i]->image.outputs;
    work.output_offset += phases[i]->first_output * axis.output_stride;
    outputs.push_back({phases[i]->image.outputs, {phases[i]->output_step * axis.output_stride}});
  }
  work.output_columns = Merged(std::move(outputs));
  if (shape.groups == 1) work.batches.pop_back();
  if (IsPlain(image)) {
    work.b.stride = PixelsOf(image)[0].strides[0];
    work.b.depth_stride = shape.input_channel_stride;
  } else {
    work.image = std::move(image);
  }
  return work;
}

// Moves dimensions that only have one element before the others: patches are read in lines along
// the last one.
void MakeLinesLong(ConvolutionShape& shape) {
  std::stable_partition(shape.axes.begin(), shape.axes.end(), [](const ConvolutionAxis& axis) {
    return axis.input == 1 && axis.output == 1 && axis.filter == 1;
  });
}

}  // namespace

std::unique_ptr<CpuProgram> CpuConvolution(const OperatorDesc& operator_desc) {
  const ConvolutionDesc desc = ConvolutionDesc::From(operator_desc);
  ConvolutionShape shape = ShapeOf(desc);
  MakeLinesLong(shape);
  uint64_t phase_count = 1;
  for (const ConvolutionAxis& axis : shape.axes) {
    phase_count = std::min(kMostPhases + 1, phase_count) *
                  std::min<uint64_t>({axis.stride, axis.output, kMostPhases + 1});
  }
  std::array<std::vector<Phase>, 3> phases;
  for (size_t i = 0; i < 3; ++i) {
    phases[i] = PhasesOf(shape.axes[i], desc.is_backward(), phase_count > kMostPhases);
  }
  std::vector<ProductWork> works;
  for (const Phase& z : phases[0]) {
    for (const Phase& y : phases[1]) {
      for (const Phase& x : phases[2]) {
        ProductWork work = WorkOf(shape, {&z, &y, &x});
        work.is_half = desc.input.data_type == DataType::kFloat16;
        if (desc.bias.has_value()) work.addend = {.row_stride = shape.bias_stride};
        TransposeColumn(work);  // one pixel per channel: the filter is read as it is
        works.push_back(std::move(work));
      }
    }
  }
  return MakeProductProgram(std::move(works));
}

}  // namespace opmill
