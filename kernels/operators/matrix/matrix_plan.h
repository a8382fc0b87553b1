// The dispatches of products of matrices, for gemm and convolution.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_PLAN_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_PLAN_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/matrix_constants.h"

namespace opmill {

struct MatrixTensor {
  uint32_t input = 0;
  // From an element to the next along each dimension that is divided, and how far the others reach.
  std::array<uint64_t, 2> batch_strides = {};
  uint64_t row_stride = 0;
  uint64_t column_stride = 0;
  uint64_t span = 0;
  uint64_t first = 0;  // of the elements that the others reach: where they start
};

// A product whose constants have everything but bases, counts, tiles and slots.
struct MatrixProduct {
  DataType type = DataType::kFloat32;
  bool is_image = false;
  bool is_spread = false;
  bool divides_columns = true;
  std::array<uint64_t, 2> batches = {1, 1};
  uint64_t rows = 1;
  uint64_t columns = 1;
  MatrixTensor a;
  MatrixTensor b;
  MatrixTensor addend;
  MatrixTensor output;
  MatrixConstants constants = {};
};

// Divides the product until each part fits into views. Divides K of a part into slots if its
// results are too few for the device; a further pass adds the sums of the slots. Returns
// ResourceExhausted if one element of the output needs more than a view.
absl::Status PlanProduct(PlanBuilder& builder, const MatrixProduct& product);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_PLAN_H_
