#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/rounding.h"
#include "kernels/operators/matrix/product_part.h"
#include "kernels/operators/matrix/winograd.h"

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

void ProductPart::Keep(size_t input, const ConstantInput& constant) {
  if (work_.a.input == input) {
    kept_a_ = constant.Keep(FormOf(kProductA), CopiesOf(work_, kProductA) * AFloats(),
                            [this](const std::byte* bytes, float* to) { WriteA(bytes, to); });
  }
  if (work_.b.input == input) {
    kept_b_ =
        constant.Keep(FormOf(kProductB), CopiesOf(work_, kProductB) * work_.depth * PaddedColumns(),
                      [this](const std::byte* bytes, float* to) { WriteB(bytes, to); });
  }
}

std::string ProductPart::FormOf(ProductTensor tensor) const {
  const bool is_a = tensor == kProductA;
  const ProductOperand& operand = is_a ? work_.a : work_.b;
  std::string form = absl::StrCat(
      is_a ? "a" : "b", work_.is_half ? " half " : " ", work_.depth, " in ", cut_.block_depth, " ",
      operand.stride, " ", operand.depth_stride, " ", absl::StrJoin(operand.tap_offsets, ","));
  if (!is_a) {
    absl::StrAppend(&form, " columns ", work_.columns, " in ", kernels_.panel_columns);
  } else if (cut_.method == ProductMethod::kWindow) {
    absl::StrAppend(&form, " window ", work_.rows);
  } else {
    const bool has_tiles = cut_.method == ProductMethod::kTiles;
    absl::StrAppend(&form, " rows ", work_.rows, " in ", cut_.row_panels, " of ", cut_.panel_rows);
    if (has_tiles) absl::StrAppend(&form, " tiled by ", cut_.pack_rows);
  }
  for (const auto& dim : work_.batches) {
    const uint64_t stride = dim.strides[tensor];
    if (stride != 0) absl::StrAppend(&form, " ", dim.size, " by ", stride);
  }
  return form;
}

ProductTask ProductPart::TaskAt(uint64_t index) const {
  const uint64_t column_parts = ColumnPartsOf(work_, cut_);
  const uint64_t part = index % column_parts;
  const uint64_t row_parts = CeilDiv(work_.rows, cut_.rows);
  const PartRange rows =
      PartAt(work_.rows, cut_.method == ProductMethod::kTiles ? cut_.rows : cut_.panel_rows,
             row_parts, index / column_parts % row_parts);
  ProductTask task = {.row = rows.first, .rows = rows.count};
  if (HasBands(cut_.method)) {
    const auto& axes = work_.image->axes;
    task.z = part / cut_.bands;
    task.line = part % cut_.bands * cut_.band_lines;
    task.lines = std::min(cut_.band_lines, axes[1].outputs - task.line);
    task.column = (task.z * axes[1].outputs + task.line) * axes[2].outputs;
    task.columns = task.lines * axes[2].outputs;
  } else {
    const PartRange columns = PartAt(work_.columns, kPanelColumns, column_parts, part);
    task.column = columns.first;
    task.columns = columns.count;
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
        buffers, ScratchOfA(buffers));
}

void ProductPart::RunTransform(uint64_t index, const RunBuffers& buffers) const {
  const uint64_t bands = ColumnPartsOf(work_, cut_);
  ProductTask task = TaskAt(index / cut_.input_parts % bands);
  task.batch = PlaceOf(work_, index / cut_.input_parts / bands, kProductB);
  TransformTiles(*this, task, index % cut_.input_parts, InputOf(work_.b.input, buffers),
                 Transformed(buffers));
}

uint64_t ProductPart::TaskFloats() const {
  if (cut_.method == ProductMethod::kTiles) return TileTaskFloats(work_, kernels_, cut_);
  return 3 * kBlockElements;
}

uint64_t ProductPart::OutputOffset(const ProductTask& task) const {
  return work_.output_offset + task.batch.offsets[kProductOutput] +
         task.row * work_.output_row_stride;
}

const float* ProductPart::PackedA(const ProductTask& task, const RunBuffers& buffers) const {
  const float* const packed = keeps_a() ? kept_a_->data() : ScratchOfA(buffers);
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
  return kept_b_->data() + OffsetOfB(task, k0);
}

uint64_t ProductPart::OffsetOfB(const ProductTask& task, uint64_t k0) const {
  return (task.batch.b_copy * work_.depth + k0) * PaddedColumns();
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

void ProductPart::WriteA(const std::byte* bytes, float* to) const {
  RunBuffers buffers;
  buffers.inputs[work_.a.input] = bytes;
  ForEachCopy(kProductA, [&](const ProductTask& task) {
    if (cut_.method == ProductMethod::kWindow) {
      WriteWeights(task, buffers, to + task.batch.copy * AFloats());
    } else {
      PackA(task, buffers, to);
    }
  });
}

void ProductPart::WriteB(const std::byte* bytes, float* to) const {
  RunBuffers buffers;
  buffers.inputs[work_.b.input] = bytes;
  std::vector<float> row(work_.columns);
  ForEachCopy(kProductB, [&](const ProductTask& task) {
    for (uint64_t k0 = 0; k0 < work_.depth; k0 += cut_.block_depth) {
      const uint64_t depth = std::min(cut_.block_depth, work_.depth - k0);
      PackB(task, buffers, 0, work_.columns, k0, depth, row.data(), to + OffsetOfB(task, k0));
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

uint64_t ProductPart::AFloats() const {
  if (cut_.method == ProductMethod::kTiles) return TiledFloats(work_, cut_);
  const bool is_window = cut_.method == ProductMethod::kWindow;
  return work_.depth * (is_window ? work_.rows : cut_.row_panels * cut_.panel_rows);
}

uint64_t ProductPart::PaddedColumns() const {
  return RoundUp(work_.columns, kernels_.panel_columns);
}

void ProductPart::PackA(const ProductTask& task, const RunBuffers& buffers, float* packed) const {
  float* const to = packed + task.batch.copy * AFloats();
  if (cut_.method == ProductMethod::kTiles) {
    WriteTiled(*this, task, InputOf(work_.a.input, buffers), to);
    return;
  }
  for (uint64_t k0 = 0; k0 < work_.depth; k0 += cut_.block_depth) {
    const uint64_t depth = std::min(cut_.block_depth, work_.depth - k0);
    PackRows(task, buffers, k0, depth,
             to + k0 * cut_.row_panels * cut_.panel_rows + task.row * depth);
  }
}

}  // namespace opmill
