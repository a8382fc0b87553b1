// The dispatches of products of matrices, for gemm and convolution.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_PLAN_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_PLAN_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/matrix_constants.h"

namespace opmill {

// How a tensor is read or written, apart from the dimensions that are divided.
struct MatrixTensor {
  uint32_t input = 0;
  uint64_t span = 0;   // of the other dimensions
  uint64_t first = 0;  // where they start
};

// A product whose constants have everything but bases, counts, tiles and slots.
struct MatrixProduct {
  DataType type = DataType::kFloat32;
  bool is_image = false;
  bool is_spread = false;
  bool divides_columns = true;
  ProductDims dims;                     // two of batches, the rows, and the columns
  std::array<MatrixTensor, 4> tensors;  // as in ProductTensor
  MatrixConstants constants = {};
};

// Divides the product until each part fits into views. Divides K of a part into slots if its
// results are too few for the device; a further pass adds the sums of the slots. Returns
// ResourceExhausted if one element of the output needs more than a view.
absl::Status PlanProduct(PlanBuilder& builder, const MatrixProduct& product);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_PLAN_H_
