#include <utility>

#include "kernels/operators/matrix/gemm_desc.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {

namespace {

// Products of different rows with the same B are one product of all rows.
void MergeBatches(ProductWork& work) {
  const auto follows = [&](uint64_t batch_stride, uint64_t row_stride) {
    return batch_stride == work.rows * row_stride;
  };
  while (!work.batches.empty()) {
    const ProductBatch& last = work.batches.back();
    const bool is_merged =
        last.size == 1 ||
        (last.b == 0 && follows(last.a, work.a.stride) &&
         follows(last.output, work.output_row_stride) &&
         (!work.addend.has_value() || follows(last.addend, work.addend->row_stride)));
    if (!is_merged) return;
    work.rows *= last.size;
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
                      .rows = output.rows,
                      .columns = output.columns,
                      .depth = a.columns,
                      .a = {.input = 0, .stride = a.row_stride, .depth_stride = a.column_stride},
                      .b = {.input = 1, .stride = b.column_stride, .depth_stride = b.row_stride},
                      .alpha = desc.alpha,
                      .beta = desc.beta,
                      .output_row_stride = output.row_stride,
                      .output_columns = {{output.columns, output.column_stride}}};
  std::vector<uint32_t> addends(desc.a.sizes.size(), 0);
  if (desc.c.has_value()) {
    const MatrixLayout c = LayoutOf(*desc.c);
    work.addend = {.row_stride = c.row_stride, .column_stride = c.column_stride};
    addends = EffectiveStrides(*desc.c);
  }
  const std::vector<uint32_t> a_strides = EffectiveStrides(desc.a);
  const std::vector<uint32_t> b_strides = EffectiveStrides(desc.b);
  const std::vector<uint32_t> output_strides = EffectiveStrides(*desc.output);
  for (size_t d = 0; d + 2 < a_strides.size(); ++d) {
    work.batches.push_back(
        {desc.a.sizes[d], a_strides[d], b_strides[d], addends[d], output_strides[d]});
  }
  MergeBatches(work);
  if (work.columns == 1 && work.rows > 1) {
    // The transposed product, so that its one row is the short side.
    std::swap(work.a, work.b);
    std::swap(work.rows, work.columns);
    work.output_row_stride = output.column_stride;
    work.output_columns = {{work.columns, output.row_stride}};
    if (work.addend.has_value()) std::swap(work.addend->row_stride, work.addend->column_stride);
    for (ProductBatch& batch : work.batches) std::swap(batch.a, batch.b);
  }
  std::vector<ProductWork> works;
  works.push_back(std::move(work));
  return MakeProductProgram(std::move(works));
}

}  // namespace opmill
