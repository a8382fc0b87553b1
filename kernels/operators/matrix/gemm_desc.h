// The descriptor of gemm in typed form.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_GEMM_DESC_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_GEMM_DESC_H_

#include <cstdint>
#include <optional>

#include "kernels/descriptor/operator_desc.h"

namespace opmill {

extern const OperatorSchema kGemmSchema;

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
};

// A matrix of a tensor whose last two dimensions are its rows and columns.
struct MatrixLayout {
  uint32_t rows = 1;
  uint32_t columns = 1;
  uint32_t row_stride = 0;
  uint32_t column_stride = 0;
};
MatrixLayout LayoutOf(const TensorDesc& tensor, MatrixTransform transform = MatrixTransform::kNone);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_GEMM_DESC_H_
