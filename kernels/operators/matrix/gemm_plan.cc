#include <bit>

#include "kernels/operators/matrix/gemm_desc.h"
#include "kernels/operators/matrix/matrix_plan.h"

namespace opmill {
namespace {

// The strides of the dimensions before the last two, which are two at most.
std::array<uint64_t, 2> BatchStridesOf(const TensorDesc& tensor) {
  const std::vector<uint32_t> strides = EffectiveStrides(tensor);
  std::array<uint64_t, 2> batch_strides = {};
  const size_t count = strides.size() - 2;
  for (size_t d = 0; d < count; ++d) batch_strides[2 - count + d] = strides[d];
  return batch_strides;
}

MatrixTensor TensorOf(uint32_t input, const TensorDesc& tensor) {
  return {.input = input, .batch_strides = BatchStridesOf(tensor)};
}

}  // namespace

absl::Status PlanGemm(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const GemmDesc desc = GemmDesc::From(operator_desc);
  FillGaps(builder, BufferRole::Output(), *desc.output);
  const MatrixLayout a = LayoutOf(desc.a, desc.trans_a);
  const MatrixLayout b = LayoutOf(desc.b, desc.trans_b);
  const MatrixLayout output = LayoutOf(*desc.output);
  MatrixProduct product = {.type = desc.a.data_type,
                           .rows = output.rows,
                           .columns = output.columns,
                           .a = TensorOf(0, desc.a),
                           .b = TensorOf(1, desc.b),
                           .output = TensorOf(0, *desc.output)};
  product.a.row_stride = a.row_stride;
  product.a.span = uint64_t{a.columns - 1} * a.column_stride;
  product.b.column_stride = b.column_stride;
  product.b.span = uint64_t{b.rows - 1} * b.row_stride;
  product.output.row_stride = output.row_stride;
  product.output.column_stride = output.column_stride;
  MatrixConstants& constants = product.constants;
  constants.has_addend = desc.c.has_value() && desc.beta != 0 ? 1 : 0;
  if (constants.has_addend != 0) {
    const MatrixLayout c = LayoutOf(*desc.c);
    product.addend = TensorOf(2, *desc.c);
    product.addend.row_stride = constants.addend_row_stride = c.row_stride;
    product.addend.column_stride = constants.addend_column_stride = c.column_stride;
  }
  const size_t count = desc.a.sizes.size() - 2;
  for (size_t d = 0; d < count; ++d) product.batches[2 - count + d] = desc.a.sizes[d];
  constants.depth = a.columns;
  constants.a_row_stride = a.row_stride;
  constants.a_depth_stride = a.column_stride;
  constants.b_column_stride = b.column_stride;
  constants.b_depth_stride = b.row_stride;
  constants.output_row_stride = output.row_stride;
  constants.output_column_stride = output.column_stride;
  constants.a_runs_along_rows = a.row_stride < a.column_stride ? 1 : 0;
  constants.b_runs_along_columns = b.column_stride < b.row_stride ? 1 : 0;
  constants.alpha = std::bit_cast<uint32_t>(desc.alpha);
  constants.beta = std::bit_cast<uint32_t>(desc.beta);
  return PlanProduct(builder, product);
}

}  // namespace opmill
