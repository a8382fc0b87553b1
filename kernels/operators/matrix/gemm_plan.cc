#include <bit>

#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/matrix/matrix_plan.h"

namespace opmill {

absl::Status PlanGemm(PlanBuilder& builder, const OperatorDesc& operator_desc) {
  const GemmDesc desc = GemmDesc::From(operator_desc);
  FillGaps(builder, BufferRole::Output(), *desc.output);
  const MatrixLayout a = LayoutOf(desc.a, desc.trans_a);
  const MatrixLayout b = LayoutOf(desc.b, desc.trans_b);
  const MatrixLayout output = LayoutOf(*desc.output);
  MatrixLayout addend;
  if (desc.addend() != nullptr) addend = LayoutOf(*desc.addend());
  MatrixProduct product = {.type = desc.a.data_type, .dims = desc.BatchDims()};
  while (product.dims.size() < 2) product.dims.emplace(product.dims.begin());
  product.dims.push_back({output.rows, {a.row_stride, 0, addend.row_stride, output.row_stride}});
  product.dims.push_back(
      {output.columns, {0, b.column_stride, addend.column_stride, output.column_stride}});
  product.tensors[kProductA] = {.input = 0, .span = uint64_t{a.columns - 1} * a.column_stride};
  product.tensors[kProductB] = {.input = 1, .span = uint64_t{b.rows - 1} * b.row_stride};
  if (desc.addend() != nullptr) product.tensors[kProductAddend].input = 2;
  MatrixConstants& constants = product.constants;
  constants.has_addend = desc.addend() != nullptr ? 1 : 0;
  constants.addend_row_stride = addend.row_stride;
  constants.addend_column_stride = addend.column_stride;
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
