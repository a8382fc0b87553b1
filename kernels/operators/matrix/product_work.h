// Matrix products as plain data for the processor: what gemm and convolution become.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_WORK_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_WORK_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/dims/dims.h"
#include "kernels/operators/matrix/matrix_desc.h"

namespace opmill {

// Element (i, k) of A or (k, i) of B lies at i * stride + k * depth_stride. With tap_offsets, k
// belongs to channel k / taps and tap k % taps, and it lies at i * stride + channel * depth_stride
// + tap_offsets[tap].
struct ProductOperand {
  size_t input = 0;
  uint64_t stride = 0;
  uint64_t depth_stride = 0;
  std::vector<uint64_t> tap_offsets;
};

// A dimension of the images that a convolution walks: output o reads element (o * step + tap) /
// spread, and zero where that is no integer or outside of [0, size).
struct ImageAxis {
  uint64_t outputs = 1;
  uint64_t step = 1;
  uint64_t spread = 1;
  uint64_t size = 1;
  uint64_t stride = 0;  // in elements
};

// B as the patches of an image: row k belongs to channel k / taps.size() and tap k % taps.size();
// columns are the outputs, in row-major order.
struct ProductImage {
  std::array<ImageAxis, 3> axes;
  uint64_t channel_stride = 0;
  std::vector<std::array<int64_t, 3>> taps;
};

struct ProductAddend {
  size_t input = 2;
  uint64_t row_stride = 0;
  uint64_t column_stride = 0;
};

// output = alpha * A * B + beta * addend, for every element of the batches. All tensors are
// FLOAT32, or all are FLOAT16.
struct ProductWork {
  bool is_half = false;
  bool is_batched = false;  // as in OperatorDesc: one row is rounded as many are
  ProductDims batches;      // dimensions of equal products
  uint64_t rows = 1;
  uint64_t columns = 1;
  uint64_t depth = 0;
  ProductOperand a;
  ProductOperand b;
  std::optional<ProductImage> image;  // replaces the strides of b
  std::optional<ProductAddend> addend;
  float alpha = 1;
  float beta = 1;
  uint64_t output_offset = 0;
  uint64_t output_row_stride = 0;
  Dims<1> output_columns;  // row-major, at least one; their sizes multiply to `columns`
};

// Whether tasks write their results to the output: FLOAT32 with adjacent columns.
inline bool WritesInPlace(const ProductWork& work) {
  const StridedDim<1>& last = work.output_columns.back();
  return !work.is_half && work.output_columns.size() == 1 &&
         (last.strides[0] == 1 || last.size == 1);
}

// The product with one column is the transposed one with one row, which is the short side.
void TransposeColumn(ProductWork& work);

// Computes all of them; they write different elements.
std::unique_ptr<CpuProgram> MakeProductProgram(std::vector<ProductWork> works);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_WORK_H_
