#include <algorithm>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/operators/matrix/product_part.h"

namespace opmill {

// In panels. One row is multiplied with B in place, which is read only once.
bool ProductPart::CanKeep(size_t input) const {
  const bool is_row = cut_.method == ProductMethod::kDots || cut_.method == ProductMethod::kRow;
  if (work_.a.input == input && (is_row || cut_.has_direct_a)) return false;
  if (work_.b.input == input && (is_row || work_.image.has_value() || cut_.has_row_lanes)) {
    return false;
  }
  return !work_.addend.has_value() || work_.addend->input != input;
}

void ProductPart::Keep(size_t input, const std::byte* bytes) {
  if (work_.a.input == input) KeepA(bytes);
  if (work_.b.input == input) KeepB(bytes);
}

ProductTask ProductPart::TaskAt(uint64_t index) const {
  const uint64_t column_parts = ColumnPartsOf(work_, cut_);
  const uint64_t part = index % column_parts;
  const uint64_t row = index / column_parts % CeilDiv(work_.rows, cut_.rows) * cut_.rows;
  ProductTask task = {.row = row, .rows = std::min(cut_.rows, work_.rows - row)};
  if (cut_.method == ProductMethod::kLines) {
    const auto& axes = work_.image->axes;
    task.z = part / cut_.bands;
    task.line = part % cut_.bands * cut_.band_lines;
    task.lines = std::min(cut_.band_lines, axes[1].outputs - task.line);
    task.column = (task.z * axes[1].outputs + task.line) * axes[2].outputs;
    task.columns = task.lines * axes[2].outputs;
  } else {
    task.column = part * cut_.columns;
    task.columns = std::min(cut_.columns, work_.columns - task.column);
  }
  return task;
}

std::pair<uint64_t, uint64_t> ProductPart::BatchesOf(uint64_t index) const {
  const uint64_t parts = ColumnPartsOf(work_, cut_) * CeilDiv(work_.rows, cut_.rows);
  const uint64_t first = index / parts * cut_.batches;
  return {first, std::min(first + cut_.batches, CountOf(work_.batches))};
}

void ProductPart::RunPack(uint64_t index, const RunBuffers& buffers) const {
  const uint64_t parts = CeilDiv(work_.rows, cut_.pack_rows);
  const uint64_t row = index % parts * cut_.pack_rows;
  PackA({.batch = PlaceOf(work_, index / parts, kProductA),
         .row = row,
         .rows = std::min(cut_.pack_rows, work_.rows - row)},
        buffers);
}

uint64_t ProductPart::OutputOffset(const ProductTask& task) const {
  return work_.output_offset + task.batch.offsets[kProductOutput] +
         task.row * work_.output_row_stride;
}

float* ProductPart::PackedA(const ProductTask& task, const RunBuffers& buffers) const {
  float* const packed =
      keeps_a() ? kept_a_.get() : reinterpret_cast<float*>(buffers.scratch) + cut_.scratch;
  return packed + task.batch.copy * AFloats();
}

void ProductPart::PackRows(const ProductTask& task, const RunBuffers& buffers, uint64_t k0,
                           uint64_t depth, float* to) const {
  const Elements a = InputOf(work_.a.input, buffers);
  for (uint64_t row = 0; row < task.rows; row += cut_.panel_rows) {
    PackPanel(kernels_, a, work_.a, task.batch.offsets[kProductA], task.row + row,
              std::min(cut_.panel_rows, task.rows - row), k0, depth, cut_.panel_rows,
              to + row * depth);
  }
}

void ProductPart::WriteWeights(const ProductTask& task, const RunBuffers& buffers,
                               float* to) const {
  const Elements a = InputOf(work_.a.input, buffers);
  for (uint64_t r = 0; r < task.rows; ++r) {
    for (uint64_t t = 0; t < work_.depth; ++t) {
      *to++ = a.At(task.batch.offsets[kProductA] + (task.row + r) * work_.a.stride +
                   DepthOffset(work_.a, t));
    }
  }
}

const float* ProductPart::KeptB(const ProductTask& task, uint64_t k0) const {
  return kept_b_.get() + (task.batch.b_copy * work_.depth + k0) * PaddedColumns();
}

void ProductPart::PackB(const ProductTask& task, const RunBuffers& buffers, uint64_t column,
                        uint64_t columns, uint64_t k0, uint64_t depth, float* row,
                        float* to) const {
  const Elements b = InputOf(work_.b.input, buffers);
  const uint64_t offset = task.batch.offsets[kProductB];
  const uint64_t first = task.column + column;
  const uint64_t width = kernels_.panel_columns;
  if (work_.image.has_value()) {
    const ImageRows rows(kernels_, *work_.image, b, offset, first, columns);
    for (uint64_t k = 0; k < depth; ++k) {
      rows.Write(k0 + k, row);
      kernels_.pack_row(row, columns, to + k * width, depth * width);
    }
    return;
  }
  if (work_.b.stride == 1) {
    for (uint64_t k = 0; k < depth; ++k) {
      const float* const from =
          b.Adjacent(offset + first + DepthOffset(work_.b, k0 + k), columns, row);
      kernels_.pack_row(from, columns, to + k * width, depth * width);
    }
    return;
  }
  for (uint64_t panel = 0; panel < columns; panel += width) {
    PackPanel(kernels_, b, work_.b, offset, first + panel, std::min(width, columns - panel), k0,
              depth, width, to + panel * depth);
  }
}

void ProductPart::KeepA(const std::byte* bytes) {
  RunBuffers buffers;
  buffers.inputs[work_.a.input] = bytes;
  kept_a_ = Allocate(CopiesOf(work_, kProductA), AFloats());
  ForEachCopy(kProductA, [&](const ProductTask& task) {
    if (cut_.method == ProductMethod::kWindow) {
      WriteWeights(task, buffers, PackedA(task, buffers));
    } else {
      PackA(task, buffers);
    }
  });
}

void ProductPart::KeepB(const std::byte* bytes) {
  RunBuffers buffers;
  buffers.inputs[work_.b.input] = bytes;
  kept_b_ = Allocate(CopiesOf(work_, kProductB), work_.depth * PaddedColumns());
  std::vector<float> row(work_.columns);
  ForEachCopy(kProductB, [&](const ProductTask& task) {
    for (uint64_t k0 = 0; k0 < work_.depth; k0 += cut_.block_depth) {
      const uint64_t depth = std::min(cut_.block_depth, work_.depth - k0);
      PackB(task, buffers, 0, work_.columns, k0, depth, row.data(),
            const_cast<float*>(KeptB(task, k0)));
    }
  });
}

// Calls pack(task) for a task with each different A, or B.
template <typename Pack>
void ProductPart::ForEachCopy(ProductTensor tensor, const Pack& pack) const {
  for (uint64_t copy = 0; copy < CopiesOf(work_, tensor); ++copy) {
    pack({.batch = PlaceOf(work_, copy, tensor), .rows = work_.rows, .columns = work_.columns});
  }
}

std::unique_ptr<float[]> ProductPart::Allocate(uint64_t copies, uint64_t floats) {
  kept_bytes_ += copies * floats * sizeof(float);
  return std::make_unique<float[]>(copies * floats);
}

uint64_t ProductPart::AFloats() const {
  const bool is_window = cut_.method == ProductMethod::kWindow;
  return work_.depth * (is_window ? work_.rows : cut_.row_panels * cut_.panel_rows);
}

uint64_t ProductPart::PaddedColumns() const {
  return RoundUp(work_.columns, kernels_.panel_columns);
}

void ProductPart::PackA(const ProductTask& task, const RunBuffers& buffers) const {
  float* const to = PackedA(task, buffers);
  for (uint64_t k0 = 0; k0 < work_.depth; k0 += cut_.block_depth) {
    const uint64_t depth = std::min(cut_.block_depth, work_.depth - k0);
    PackRows(task, buffers, k0, depth,
             to + k0 * cut_.row_panels * cut_.panel_rows + task.row * depth);
  }
}

}  // namespace opmill
