#include "kernels/operators/matrix/matrix_reference.h"

#include <cmath>

#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

// Inputs are FLOAT32 at most, so a product is exact in double precision.
class Sum {
 public:
  void Add(double term) {
    exact_.value += term;
    exact_.sum_of_magnitudes += std::abs(term);
  }
  void AddProduct(double a, double b) {
    Add(a * b);
    ++exact_.count;
  }
  void Scale(double factor) {
    exact_.value *= factor;
    exact_.sum_of_magnitudes *= std::abs(factor);
  }
  const ExactProduct& exact() const { return exact_; }

 private:
  ExactProduct exact_;
};

class Floats {
 public:
  Floats(const TensorDesc& desc, absl::Span<const std::byte> bytes)
      : type_(desc.data_type), reader_(desc, bytes) {}
  double At(const Coordinate& coordinate) const { return ToDouble(type_, reader_.At(coordinate)); }

 private:
  const DataType type_;
  const Reader reader_;
};

using Visit = std::function<void(const Coordinate&, const ExactProduct&)>;

void ForEachGemmElement(const GemmDesc& desc, absl::Span<const absl::Span<const std::byte>> inputs,
                        const std::stop_token& abandoned, const Visit& visit) {
  const Floats a(desc.a, inputs[0]);
  const Floats b(desc.b, inputs[1]);
  const size_t row = desc.a.sizes.size() - 2;
  const size_t column = row + 1;
  const bool is_a_transposed = desc.trans_a == MatrixTransform::kTranspose;
  const bool is_b_transposed = desc.trans_b == MatrixTransform::kTranspose;
  const uint32_t depth = desc.a.sizes[is_a_transposed ? row : column];
  ForEachCoordinate(desc.output->sizes, abandoned, [&](const Coordinate& output) {
    Coordinate in_a = output;
    Coordinate in_b = output;
    in_a[is_a_transposed ? column : row] = output[row];
    in_b[is_b_transposed ? row : column] = output[column];
    Sum sum;
    for (uint32_t k = 0; k < depth && !abandoned.stop_requested(); ++k) {
      in_a[is_a_transposed ? row : column] = k;
      in_b[is_b_transposed ? column : row] = k;
      sum.AddProduct(a.At(in_a), b.At(in_b));
    }
    sum.Scale(desc.alpha);
    if (desc.addend() != nullptr) {
      sum.Add(desc.beta * Floats(*desc.addend(), inputs[2]).At(output));
    }
    visit(output, sum.exact());
  });
}

// The input element that a tap of the filter meets at an output, or false if there is none.
bool FindInput(const ConvolutionDesc& desc, size_t axis, uint32_t output, uint32_t tap,
               uint32_t& input) {
  const int64_t dilated = int64_t{tap} * desc.dilations[axis];
  const int64_t stride = desc.strides[axis];
  const int64_t padding = desc.start_padding[axis];
  int64_t position = 0;
  if (desc.is_backward()) {
    const int64_t moved = output + padding - dilated;
    if (moved % stride != 0) return false;
    position = moved / stride;
  } else {
    position = output * stride + dilated - padding;
  }
  if (position < 0 || position >= desc.input.sizes[axis + 2]) return false;
  input = static_cast<uint32_t>(position);
  return true;
}

void ForEachConvolutionElement(const ConvolutionDesc& desc,
                               absl::Span<const absl::Span<const std::byte>> inputs,
                               const std::stop_token& abandoned, const Visit& visit) {
  const Floats input(desc.input, inputs[0]);
  const Floats filter(desc.filter, inputs[1]);
  const uint32_t in_channels = desc.input.sizes[1] / desc.group_count;
  const uint32_t out_channels = desc.output->sizes[1] / desc.group_count;
  std::vector<uint32_t> window = desc.filter.sizes;
  window[0] = 1;
  window[1] = in_channels;
  ForEachCoordinate(desc.output->sizes, abandoned, [&](const Coordinate& output) {
    const uint32_t group = output[1] / out_channels;
    Sum sum;
    ForEachCoordinate(window, abandoned, [&](const Coordinate& at) {
      Coordinate in_input = output;
      Coordinate in_filter = at;
      in_input[1] = group * in_channels + at[1];
      in_filter[0] = desc.is_backward() ? in_input[1] : output[1];
      in_filter[1] = desc.is_backward() ? output[1] % out_channels : at[1];
      for (size_t axis = 0; axis + 2 < at.size(); ++axis) {
        if (!FindInput(desc, axis, output[axis + 2], at[axis + 2], in_input[axis + 2])) return;
        if (desc.mode == ConvolutionMode::kConvolution) {
          in_filter[axis + 2] = window[axis + 2] - 1 - at[axis + 2];
        }
      }
      sum.AddProduct(input.At(in_input), filter.At(in_filter));
    });
    if (desc.bias.has_value()) {
      Coordinate in_bias(output.size(), 0);
      in_bias[1] = output[1];
      sum.Add(Floats(*desc.bias, inputs[2]).At(in_bias));
    }
    visit(output, sum.exact());
  });
}

void StoreExact(const ReferenceCall& call) {
  const TensorDesc& output = *call.desc.outputs[0];
  Writer writer(output, call.outputs[0]);
  ForEachExactProduct(call.desc, call.inputs, call.abandoned,
                      [&](const Coordinate& coordinate, const ExactProduct& exact) {
                        writer.Store(coordinate, FromDouble(output.data_type, exact.value));
                      });
}

}  // namespace

void ForEachExactProduct(const OperatorDesc& validated,
                         absl::Span<const absl::Span<const std::byte>> inputs,
                         const std::stop_token& abandoned, const Visit& visit) {
  if (validated.schema->family == OperatorFamily::kGemm) {
    ForEachGemmElement(GemmDesc::From(validated), inputs, abandoned, visit);
  } else {
    ForEachConvolutionElement(ConvolutionDesc::From(validated), inputs, abandoned, visit);
  }
}

void ReferenceGemm(const ReferenceCall& call) { StoreExact(call); }
void ReferenceConvolution(const ReferenceCall& call) { StoreExact(call); }

}  // namespace opmill
