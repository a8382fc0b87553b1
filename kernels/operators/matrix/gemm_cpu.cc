#include <utility>

#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {
namespace {

// Products of different rows with the same B are one product of all rows.
void MergeBatches(ProductWork& work) {
  const auto follows = [&](uint64_t batch_stride, uint64_t row_stride) {
    return batch_stride == work.rows * row_stride;
  };
  while (!work.batches.empty()) {
    const auto& [size, strides] = work.batches.back();
    const bool is_merged =
        size == 1 ||
        (strides[kProductB] == 0 && follows(strides[kProductA], work.a.stride) &&
         follows(strides[kProductOutput], work.output_row_stride) &&
         (!work.addend.has_value() || follows(strides[kProductAddend], work.addend->row_stride)));
    if (!is_merged) return;
    work.rows *= size;
    work.batches.pop_back();
  }
}

}  // namespace

std::unique_ptr<CpuProgram> CpuGemm(const OperatorDesc& operator_desc) {
  const GemmDesc desc = GemmDesc::From(operator_desc);
  const MatrixLayout a = LayoutOf(desc.a, desc.trans_a);
  const MatrixLayout b = LayoutOf(desc.b, desc.trans_b);
  const MatrixLayout output = LayoutOf(*desc.output);
  ProductWork work = {.is_half = desc.a.data_type == DataType::kFloat16,
                      .is_batched = operator_desc.is_batched,
                      .batches = desc.BatchDims(),
                      .rows = output.rows,
                      .columns = output.columns,
                      .depth = a.columns,
                      .a = {.input = 0, .stride = a.row_stride, .depth_stride = a.column_stride},
                      .b = {.input = 1, .stride = b.column_stride, .depth_stride = b.row_stride},
                      .alpha = desc.alpha,
                      .beta = desc.beta,
                      .output_row_stride = output.row_stride,
                      .output_columns = {{output.columns, {output.column_stride}}}};
  if (desc.addend() != nullptr) {
    const MatrixLayout c = LayoutOf(*desc.addend());
    work.addend = {.row_stride = c.row_stride, .column_stride = c.column_stride};
  }
  MergeBatches(work);
  if (!work.is_batched) TransposeColumn(work);
  std::vector<ProductWork> works;
  works.push_back(std::move(work));
  return MakeProductProgram(std::move(works));
}

}  // namespace opmill
