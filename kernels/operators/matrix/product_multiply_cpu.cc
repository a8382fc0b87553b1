#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/operators/elementwise/element_wise_kernels.h"
#include "kernels/operators/matrix/product_output.h"
#include "kernels/operators/matrix/product_part.h"
#include "kernels/operators/matrix/winograd.h"

namespace opmill {
namespace {

constexpr uint64_t kSlack = 64;  // floats behind the end of lines that kernels read or write

class TaskProduct {
 public:
  TaskProduct(const ProductPart& part, const ProductTask& task, const RunBuffers& buffers)
      : part_(part),
        kernels_(part.kernels()),
        work_(part.work()),
        cut_(part.cut()),
        task_(task),
        buffers_(buffers) {}

  void Run() {
    const bool is_in_place = WritesInPlace(work_);
    ProductBlock block = {.rows = task_.rows, .panel_rows = cut_.panel_rows};
    if (is_in_place) {
      block.result =
          reinterpret_cast<float*>(buffers_.outputs[0]) + part_.OutputOffset(task_) + task_.column;
      block.result_stride = work_.output_row_stride;
    } else {
      block.result = Take(task_.rows * task_.columns);
      block.result_stride = task_.columns;
    }
    block.finish = Finish();
    if (cut_.has_row_lanes) {
      MultiplyRowLanes(block);
    } else if (cut_.method == ProductMethod::kDots || cut_.method == ProductMethod::kRow) {
      MultiplyRow(block);
    } else if (cut_.method == ProductMethod::kWindow) {
      MultiplyWindow(block);
    } else if (cut_.method == ProductMethod::kLines) {
      MultiplyLines(block);
    } else if (cut_.method == ProductMethod::kTiles) {
      MultiplyTiles(part_, task_, buffers_, block);
    } else {
      MultiplyBlocks(block);
    }
    if (!is_in_place) Store(block.result);
  }

 private:
  float* Take(uint64_t floats) {
    return reinterpret_cast<float*>(scope_.Take(floats * sizeof(float)));
  }

  Elements B() const { return part_.InputOf(work_.b.input, buffers_); }

  ProductFinish Finish() {
    ProductFinish finish = {.alpha = work_.alpha, .beta = work_.beta, .has_relu = part_.has_relu()};
    if (!work_.addend.has_value()) return finish;
    const ProductAddend& addend = *work_.addend;
    const Elements elements = part_.InputOf(addend.input, buffers_);
    const uint64_t start = task_.batch.offsets[kProductAddend] + task_.row * addend.row_stride +
                           task_.column * addend.column_stride;
    if (addend.column_stride == 0) {
      const uint64_t padded = RoundUp(task_.rows, kernels_.lanes);
      float* const rows = Take(padded);
      for (uint64_t r = 0; r < task_.rows; ++r) {
        rows[r] = work_.beta * elements.At(start + r * addend.row_stride);
      }
      std::fill(rows + task_.rows, rows + padded, 0.0f);
      finish.row_addends = rows;
    } else if (addend.column_stride == 1 && !work_.is_half) {
      finish.addend = elements.floats() + start;
      finish.addend_stride = addend.row_stride;
    } else {
      float* const matrix = Take(task_.rows * task_.columns);
      for (uint64_t r = 0; r < task_.rows; ++r) {
        const uint64_t row = start + r * addend.row_stride;
        for (uint64_t i = 0; i < task_.columns; ++i) {
          matrix[r * task_.columns + i] = elements.At(row + i * addend.column_stride);
        }
      }
      finish.addend = matrix;
      finish.addend_stride = task_.columns;
    }
    return finish;
  }

  // Where the task packs A for a block of K; null if it does not.
  float* TakeA() {
    if (!part_.PacksA()) return nullptr;
    return Take(RoundUp(task_.rows, cut_.panel_rows) * cut_.block_depth);
  }

  // A for the block of K at k0. `own` is where the task packs it.
  void FindA(uint64_t k0, float* own, ProductBlock& block) const {
    if (cut_.has_direct_a) {
      block.a = part_.InputOf(work_.a.input, buffers_).floats() + task_.batch.offsets[kProductA] +
                task_.row * work_.a.stride + k0;
      block.a_stride = work_.a.stride;
    } else if (own != nullptr) {
      part_.PackRows(task_, buffers_, k0, block.depth, own);
      block.a = own;
    } else {
      block.a = part_.PackedA(task_, buffers_) + k0 * cut_.row_panels * cut_.panel_rows +
                task_.row * block.depth;
    }
  }

  // Calls multiply(k0) for the blocks of K, with the block's depth and place.
  template <typename Multiply>
  void ForEachBlock(ProductBlock& block, const Multiply& multiply) const {
    for (uint64_t k0 = 0; k0 < std::max<uint64_t>(work_.depth, 1); k0 += cut_.block_depth) {
      block.depth = std::min(cut_.block_depth, work_.depth - k0);
      block.is_first = k0 == 0;
      block.is_last = k0 + cut_.block_depth >= work_.depth;
      multiply(k0);
    }
  }

  void MultiplyBlocks(ProductBlock& block) {
    const uint64_t width = kernels_.panel_columns;
    // B is read in place, once or always, as far as it fills whole panels.
    const bool is_kept = part_.keeps_b();
    const bool is_adjacent = work_.b.stride == 1 && work_.b.tap_offsets.empty() &&
                             !work_.image.has_value() && !work_.is_half;
    const uint64_t direct = is_adjacent && !is_kept ? task_.columns / width * width : 0;
    const uint64_t packed = task_.columns - direct;
    float* const b = is_kept ? nullptr : Take(RoundUp(packed, width) * cut_.block_depth);
    float* const b_copy =
        direct > 0 && !cut_.has_direct_b ? Take(direct * cut_.block_depth) : nullptr;
    float* const row = is_kept ? nullptr : Take(packed);
    float* const a = TakeA();
    ForEachBlock(block, [&](uint64_t k0) {
      FindA(k0, a, block);
      if (direct > 0) {
        ProductBlock part = block;
        part.columns = direct;
        part.b = B().floats() + task_.batch.offsets[kProductB] + task_.column +
                 k0 * work_.b.depth_stride;
        part.b_stride = work_.b.depth_stride;
        part.b_panel = width;
        part.b_comes_once = cut_.has_direct_b;
        part.b_copy = b_copy;
        kernels_.multiply(part);
      }
      if (packed == 0) return;
      ProductBlock part = block;
      part.columns = packed;
      if (is_kept) {
        part.b = part_.KeptB(task_, k0) + task_.column * block.depth;
        part.b_comes_once = task_.columns > task_.rows;  // what is larger is read only once
      } else {
        part_.PackB(task_, buffers_, direct, packed, k0, block.depth, row, b);
        part.b = b;
      }
      part.b_stride = width;
      part.b_panel = width * block.depth;
      part.result += direct;
      if (part.finish.addend != nullptr) part.finish.addend += direct;
      kernels_.multiply(part);
    });
  }

  void MultiplyRow(const ProductBlock& block) {
    const Elements a = part_.InputOf(work_.a.input, buffers_);
    const uint64_t a_offset = task_.batch.offsets[kProductA];
    const float* row = a.floats() + a_offset;
    if (work_.a.depth_stride != 1 || !work_.a.tap_offsets.empty()) {
      float* const packed = Take(work_.depth);
      for (uint64_t k = 0; k < work_.depth; ++k) {
        packed[k] = a.At(a_offset + DepthOffset(work_.a, k));
      }
      row = packed;
    }
    const float* const b =
        B().floats() + task_.batch.offsets[kProductB] + task_.column * work_.b.stride;
    if (cut_.method == ProductMethod::kDots) {
      kernels_.dots(row, b, work_.b.stride, task_.columns, work_.depth, cut_.block_depth,
                    block.result);
    } else {
      float* const part = Take(task_.columns);
      for (uint64_t k0 = 0; k0 < work_.depth; k0 += cut_.block_depth) {
        const uint64_t depth = std::min(cut_.block_depth, work_.depth - k0);
        kernels_.weigh_rows(row + k0, b + k0 * work_.b.depth_stride, work_.b.depth_stride, depth,
                            task_.columns, k0 == 0 ? block.result : part);
        for (uint64_t i = 0; i < task_.columns && k0 > 0; ++i) block.result[i] += part[i];
      }
    }
    const ProductFinish& finish = block.finish;
    for (uint64_t i = 0; i < task_.columns; ++i) {
      float sum = finish.alpha * block.result[i];
      if (finish.row_addends != nullptr) sum += finish.row_addends[0];
      if (finish.addend != nullptr) sum += finish.beta * finish.addend[i];
      block.result[i] = sum;
    }
  }

  void MultiplyWindow(const ProductBlock& block) {
    const ProductImage& image = *work_.image;
    const auto& axes = image.axes;
    const uint64_t taps = work_.depth;
    const float* weights = nullptr;
    if (part_.keeps_a()) {
      weights = part_.PackedA(task_, buffers_) + task_.row * taps;
    } else {
      float* const own = Take(task_.rows * taps);
      part_.WriteWeights(task_, buffers_, own);
      weights = own;
    }
    const float* const addends = block.finish.row_addends;
    if (cut_.window.has_value()) {
      const float* const plane = B().floats() + task_.batch.offsets[kProductB];
      for (uint64_t r = 0; r < task_.rows; ++r) {
        kernels_.window(*cut_.window, plane, weights + r * taps,
                        addends == nullptr ? 0.0f : addends[r],
                        block.result + r * block.result_stride);
      }
      return;
    }
    const ImageLines& lines = cut_.lines;
    const uint64_t band = cut_.band_lines;
    float* const copies = Take(lines.channel_floats + kSlack);
    const bool is_whole = lines.width == lines.outputs;
    float* const padded = Take(is_whole ? 0 : lines.SpanOf(band) + kSlack);
    float* const packed = Take(is_whole ? 0 : band * lines.outputs + kSlack);
    std::vector<const float*> from(taps);
    for (uint64_t t = 0; t < taps; ++t) from[t] = copies + lines.tap_offsets[t];
    const Elements b = B();
    const ImageRows rows(kernels_, image, b, 0, 0, 0);
    for (uint64_t z = 0; z < axes[0].outputs; ++z) {
      for (uint64_t y = 0; y < axes[1].outputs; y += band) {
        const uint64_t count = std::min(band, axes[1].outputs - y);
        lines.Write(rows, task_.batch.offsets[kProductB], z, y, count, copies);
        for (uint64_t r = 0; r < task_.rows; ++r) {
          float* const result =
              block.result + r * block.result_stride + (z * axes[1].outputs + y) * axes[2].outputs;
          const float addend = addends == nullptr ? 0.0f : addends[r];
          if (is_whole) {
            kernels_.weigh(from.data(), weights + r * taps, taps, addend, lines.SpanOf(count),
                           result);
            continue;
          }
          kernels_.weigh(from.data(), weights + r * taps, taps, addend,
                         RoundUp(lines.SpanOf(count), kernels_.lanes), padded);
          CopyLines(padded, count, packed, result);
        }
      }
    }
  }

  // Without what is between the lines. Short ones go through memory that has room for a vector
  // behind them.
  void CopyLines(const float* from, uint64_t count, float* memory, float* to) const {
    const ImageLines& lines = cut_.lines;
    if (lines.outputs >= 2 * kernels_.lanes) {
      for (uint64_t line = 0; line < count; ++line) {
        std::memcpy(to + line * lines.outputs, from + line * lines.width,
                    lines.outputs * sizeof(float));
      }
      return;
    }
    kernels_.copy_lines(
        {.from = from, .from_stride = lines.width, .lines = count, .count = lines.outputs}, memory);
    std::memcpy(to, memory, count * lines.outputs * sizeof(float));
  }

  // The task's lines for a block of K.
  void WriteLines(const ImageRows& rows, uint64_t k0, uint64_t depth, float* to) const {
    const ImageLines& lines = cut_.lines;
    const uint64_t taps = lines.tap_offsets.size();
    for (uint64_t c = 0; c < depth / taps; ++c) {
      lines.Write(rows,
                  task_.batch.offsets[kProductB] + (k0 / taps + c) * work_.image->channel_stride,
                  task_.z, task_.line, task_.lines, to + c * lines.channel_floats);
    }
  }

  // Of the rows of B in the lines.
  std::vector<uint32_t> LineOffsets() const {
    const ImageLines& lines = cut_.lines;
    const uint64_t taps = lines.tap_offsets.size();
    std::vector<uint32_t> offsets(cut_.block_depth);
    for (uint64_t k = 0; k < offsets.size(); ++k) {
      offsets[k] =
          static_cast<uint32_t>(k / taps * lines.channel_floats) + lines.tap_offsets[k % taps];
    }
    return offsets;
  }

  float* TakeLines() {
    const ImageLines& lines = cut_.lines;
    return Take(cut_.block_depth / lines.tap_offsets.size() * lines.channel_floats + kSlack);
  }

  void MultiplyLines(const ProductBlock& whole) {
    const ImageLines& lines = cut_.lines;
    // Each line in vectors of its own, if that takes not more of them and there is one block of K.
    const bool has_own_vectors = lines.width > lines.outputs && cut_.block_depth >= work_.depth &&
                                 whole.finish.addend == nullptr &&
                                 task_.lines * CeilDiv(lines.outputs, kernels_.lanes) <=
                                     CeilDiv(lines.SpanOf(task_.lines), kernels_.lanes);
    const bool is_whole = lines.width == lines.outputs || has_own_vectors;
    ProductBlock block = whole;
    block.columns = lines.SpanOf(task_.lines);
    block.b_panel = kernels_.panel_columns;
    if (has_own_vectors) {
      block.columns = task_.columns;
      block.line_columns = lines.outputs;
      block.line_width = lines.width;
    }
    if (!is_whole) {
      block.result_stride = RoundUp(block.columns, kernels_.panel_columns);
      block.result = Take(task_.rows * block.result_stride);
    }
    float* const copies = TakeLines();
    float* const a = TakeA();
    const std::vector<uint32_t> offsets = LineOffsets();
    block.b = copies;
    block.b_offsets = offsets.data();
    const Elements b = B();
    const ImageRows rows(kernels_, *work_.image, b, 0, 0, 0);
    ForEachBlock(block, [&](uint64_t k0) {
      WriteLines(rows, k0, block.depth, copies);
      FindA(k0, a, block);
      kernels_.multiply(block);
    });
    if (is_whole) return;
    float* const packed = Take(task_.columns + kSlack);
    for (uint64_t r = 0; r < task_.rows; ++r) {
      CopyLines(block.result + r * block.result_stride, task_.lines, packed,
                whole.result + r * whole.result_stride);
    }
  }

  // The transposed product, whose rows are pixels and whose columns are panels of A.
  void MultiplyRowLanes(const ProductBlock& whole) {
    const bool has_lines = cut_.method == ProductMethod::kLines;
    const ImageLines& lines = cut_.lines;
    ProductBlock block = {.rows = task_.columns,
                          .columns = RoundUp(task_.rows, kernels_.lanes),
                          .b_stride = cut_.panel_rows};
    block.result_stride = block.columns;
    block.result = Take(block.rows * block.result_stride);
    block.finish = {
        .beta = 1, .addend = whole.finish.row_addends, .has_relu = whole.finish.has_relu};
    const bool has_strips = has_lines && lines.width != lines.outputs;
    block.strip_rows = has_strips ? lines.outputs : task_.columns;
    block.strip_stride = has_strips ? lines.width : 0;
    const bool has_patches = work_.image.has_value() && !has_lines;
    std::vector<uint32_t> offsets;
    float* copies = nullptr;
    if (has_lines) {
      offsets = LineOffsets();
      copies = TakeLines();
    } else {
      const uint64_t stride = has_patches ? task_.columns : work_.b.depth_stride;
      if (has_patches) copies = Take(cut_.block_depth * stride);
      offsets.resize(cut_.block_depth);
      for (uint64_t k = 0; k < offsets.size(); ++k) offsets[k] = static_cast<uint32_t>(k * stride);
    }
    block.a_offsets = offsets.data();
    float* const packed = TakeA();
    const Elements b = B();
    const uint64_t b_offset = task_.batch.offsets[kProductB];
    const ProductImage no_image;
    const ImageRows rows(kernels_, work_.image.has_value() ? *work_.image : no_image, b, b_offset,
                         task_.column, task_.columns);
    ForEachBlock(block, [&](uint64_t k0) {
      FindA(k0, packed, block);
      block.b = block.a;
      block.b_panel = cut_.panel_rows * block.depth;
      block.a = copies;
      if (has_lines) {
        WriteLines(rows, k0, block.depth, copies);
      } else if (has_patches) {
        for (uint64_t k = 0; k < block.depth; ++k) rows.Write(k0 + k, copies + k * task_.columns);
      } else {
        block.a = b.floats() + b_offset + task_.column + k0 * work_.b.depth_stride;
      }
      kernels_.multiply(block);
    });
    kernels_.transpose(block.result, block.result_stride, task_.columns, task_.rows, whole.result,
                       whole.result_stride);
  }

  // Rounds the results once, and stores them.
  void Store(const float* results) {
    uint16_t* const halves = reinterpret_cast<uint16_t*>(Take(work_.is_half ? task_.columns : 0));
    const uint64_t stride = work_.output_columns.back().strides[0];
    for (uint64_t r = 0; r < task_.rows; ++r) {
      const float* const row = results + r * task_.columns;
      const uint64_t start = part_.OutputOffset(task_) + r * work_.output_row_stride;
      if (work_.is_half) HalvesFromFloats(row, halves, task_.columns);
      ColumnWalk walk(work_.output_columns, task_.column);
      for (uint64_t done = 0; done < task_.columns;) {
        const uint64_t count = std::min(walk.left(), task_.columns - done);
        const uint64_t to = start + walk.offset();
        if (work_.is_half) {
          Copy(halves + done, count, reinterpret_cast<uint16_t*>(buffers_.outputs[0]) + to, stride);
        } else {
          Copy(row + done, count, reinterpret_cast<float*>(buffers_.outputs[0]) + to, stride);
        }
        done += count;
        walk.Skip(count);
      }
    }
  }

  template <typename T>
  static void Copy(const T* from, uint64_t count, T* to, uint64_t stride) {
    if (stride == 1) {
      std::memcpy(to, from, count * sizeof(T));
      return;
    }
    for (uint64_t i = 0; i < count; ++i) to[i * stride] = from[i];
  }

  const ProductPart& part_;
  const MatrixKernels& kernels_;
  const ProductWork& work_;
  const ProductCut& cut_;
  const ProductTask& task_;
  const RunBuffers& buffers_;
  TaskMemory::Scope scope_;
};

}  // namespace

void RunProduct(const ProductPart& part, const ProductTask& task, const RunBuffers& buffers) {
  TaskProduct(part, task, buffers).Run();
}

}  // namespace opmill
