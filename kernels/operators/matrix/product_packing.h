// Rows and columns of matrices, and patches of images, as the floats that the kernels take.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_PACKING_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_PACKING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/base/half.h"
#include "kernels/operators/elementwise/element_wise_kernels.h"
#include "kernels/operators/matrix/matrix_kernels.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {

// Elements as floats, from tensors of either type.
class Elements {
 public:
  Elements(const std::byte* bytes, bool is_half) : bytes_(bytes), is_half_(is_half) {}

  float At(uint64_t i) const { return is_half_ ? HalfToFloat(halves()[i]) : floats()[i]; }
  // `count` adjacent ones: in place, or converted to `memory`.
  const float* Adjacent(uint64_t i, uint64_t count, float* memory) const {
    if (!is_half_) return floats() + i;
    FloatsFromHalves(halves() + i, memory, count);
    return memory;
  }
  bool is_half() const { return is_half_; }
  const float* floats() const { return reinterpret_cast<const float*>(bytes_); }
  const uint16_t* halves() const { return reinterpret_cast<const uint16_t*>(bytes_); }

 private:
  const std::byte* const bytes_;
  const bool is_half_;
};

// Of row k of B, or column k of A.
uint64_t DepthOffset(const ProductOperand& operand, uint64_t k);

// to[k * width + i] = element (first + i, k0 + k) for `count` of i; zero for the others.
void PackPanel(const MatrixKernels& kernels, const Elements& elements,
               const ProductOperand& operand, uint64_t offset, uint64_t first, uint64_t count,
               uint64_t k0, uint64_t depth, uint64_t width, float* to);

// Produces rows of B, one after the other. All arguments must outlive it.
class ImageRows {
 public:
  ImageRows(const MatrixKernels& kernels, const ProductImage& image, const Elements& elements,
            uint64_t offset, uint64_t column, uint64_t columns);

  void Write(uint64_t k, float* to) const;
  // Outputs [first, first + count) of line (z, y) of the image; zeros if it is outside.
  void WriteLine(uint64_t channel, int64_t z, int64_t y, uint64_t first, int64_t tap,
                 uint64_t count, float* to) const;
  // Outputs [0, count) of `lines` lines, the first of which reads line (z, y). Writes up to a
  // vector behind them.
  void WriteLines(uint64_t channel, int64_t z, int64_t y, uint64_t lines, int64_t tap,
                  uint64_t count, float* to) const;

 private:
  void Copy(uint64_t from, uint64_t stride, uint64_t count, float* to) const;

  const MatrixKernels& kernels_;
  const ProductImage& image_;
  const Elements& elements_;
  const uint64_t offset_;
  const uint64_t columns_;
  std::array<uint64_t, 3> first_ = {};
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_PACKING_H_
