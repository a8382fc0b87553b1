// Matrix products in blocks, as in BLIS: a task has a range of rows and columns of one product. It
// packs each block of B into panels, and multiplies it with all panels of A.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"
#include "kernels/base/rounding.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/operators/elementwise/element_wise_kernels.h"
#include "kernels/operators/matrix/matrix_kernels.h"
#include "kernels/operators/matrix/product_cut.h"
#include "kernels/operators/matrix/product_packing.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {
namespace {

struct Task {
  size_t product = 0;
  BatchPlace batch;
  uint64_t row = 0;
  uint64_t rows = 0;
  uint64_t column = 0;
  uint64_t columns = 0;
};

// Walks the columns of the output, starting at one of them.
class ColumnWalk {
 public:
  ColumnWalk(const Dims<1>& dims, uint64_t column) : dims_(dims) {
    for (size_t i = dims.size(); i-- > 0; column /= dims[i].size) {
      at_[i] = column % dims[i].size;
      offset_ += at_[i] * dims[i].strides[0];
    }
  }
  uint64_t offset() const { return offset_; }
  // The columns that follow with the stride of the last dimension.
  uint64_t left() const { return dims_.back().size - at_[dims_.size() - 1]; }
  void Skip(uint64_t count) {  // at most left()
    size_t i = dims_.size() - 1;
    at_[i] += count;
    offset_ += count * dims_[i].strides[0];
    while (i > 0 && at_[i] == dims_[i].size) {
      offset_ -= dims_[i].size * dims_[i].strides[0];
      at_[i] = 0;
      --i;
      ++at_[i];
      offset_ += dims_[i].strides[0];
    }
  }

 private:
  const Dims<1>& dims_;
  std::array<uint64_t, 3> at_ = {};
  uint64_t offset_ = 0;
};

class ProductProgram : public CpuProgram {
 public:
  explicit ProductProgram(std::vector<ProductWork> works)
      : kernels_(FindMatrixKernels()), works_(std::move(works)) {
    uint64_t scratch = 0;
    uint64_t tasks = 0;
    uint64_t packs = 0;
    for (const ProductWork& work : works_) {
      const ProductCut cut = CutOf(work, kernels_, scratch);
      tasks += cut.tasks;
      packs += cut.packs;
      cuts_.push_back(cut);
      rounding_ = absl::HashOf(rounding_, cut.method, cut.block_depth, work.depth);
      cost_bytes_ += CountOf(work.batches) *
                     (sizeof(float) * (work.rows * work.columns + work.rows * work.depth +
                                       work.columns * work.depth) +
                      work.rows * work.columns * work.depth / 8);
    }
    scratch_bytes_ = scratch * sizeof(float);
    if (packs > 0) phases_.push_back(packs);
    phases_.push_back(tasks);
    task_bytes_ = sizeof(float) * 2 * kBlockElements;
  }

  void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const override {
    const bool packs = phase + 1 < phases_.size();
    size_t product = 0;
    while (task >= (packs ? cuts_[product].packs : cuts_[product].tasks)) {
      task -= packs ? cuts_[product].packs : cuts_[product].tasks;
      ++product;
    }
    if (packs) {
      RunPack(product, task, buffers);
    } else {
      RunProducts(product, task, buffers);
    }
  }

 private:
  void RunPack(size_t product, uint64_t index, const RunBuffers& buffers) const {
    const ProductWork& work = works_[product];
    const ProductCut& cut = cuts_[product];
    const uint64_t parts = CeilDiv(work.rows, cut.pack_rows);
    const uint64_t row = index % parts * cut.pack_rows;
    PackA({.product = product,
           .batch = PlaceOf(work, index / parts, /*of_copies=*/true),
           .row = row,
           .rows = std::min(cut.pack_rows, work.rows - row)},
          buffers);
  }

  void RunProducts(size_t product, uint64_t index, const RunBuffers& buffers) const {
    const ProductWork& work = works_[product];
    const ProductCut& cut = cuts_[product];
    const uint64_t column_parts = CeilDiv(work.columns, cut.columns);
    const uint64_t row_parts = CeilDiv(work.rows, cut.rows);
    const uint64_t column = index % column_parts * cut.columns;
    const uint64_t row = index / column_parts % row_parts * cut.rows;
    const uint64_t first = index / column_parts / row_parts * cut.batches;
    Task task = {.product = product,
                 .row = row,
                 .rows = std::min(cut.rows, work.rows - row),
                 .column = column,
                 .columns = std::min(cut.columns, work.columns - column)};
    const uint64_t end = std::min(first + cut.batches, CountOf(work.batches));
    for (uint64_t batch = first; batch < end; ++batch) {
      task.batch = PlaceOf(work, batch, /*of_copies=*/false);
      Multiply(task, buffers);
    }
  }

  Elements InputOf(const ProductWork& work, size_t input, const RunBuffers& buffers) const {
    return {buffers.inputs[input], work.is_half};
  }

  // The panels of a block of K of A are together.
  static uint64_t BlockOffset(const ProductCut& cut, uint64_t k0) {
    return k0 * cut.row_panels * cut.panel_rows;
  }

  float* PackedA(const Task& task, const RunBuffers& buffers) const {
    const ProductCut& cut = cuts_[task.product];
    return reinterpret_cast<float*>(buffers.scratch) + cut.scratch +
           task.batch.copy * cut.row_panels * cut.panel_rows * works_[task.product].depth;
  }

  void PackA(const Task& task, const RunBuffers& buffers) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    float* const to = PackedA(task, buffers);
    for (uint64_t k0 = 0; k0 < work.depth; k0 += cut.block_depth) {
      const uint64_t depth = std::min(cut.block_depth, work.depth - k0);
      PackRows(task, buffers, k0, depth, to + BlockOffset(cut, k0) + task.row * depth);
    }
  }

  // The panels of the task's rows.
  void PackRows(const Task& task, const RunBuffers& buffers, uint64_t k0, uint64_t depth,
                float* to) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    const Elements a = InputOf(work, work.a.input, buffers);
    for (uint64_t row = 0; row < task.rows; row += cut.panel_rows) {
      PackPanel(kernels_, a, work.a, task.batch.offsets[kProductA], task.row + row,
                std::min(cut.panel_rows, task.rows - row), k0, depth, cut.panel_rows,
                to + row * depth);
    }
  }

  // Columns [column, column + columns) of the task.
  void PackB(const Task& task, const RunBuffers& buffers, uint64_t column, uint64_t columns,
             uint64_t k0, uint64_t depth, float* row, float* to) const {
    const ProductWork& work = works_[task.product];
    const Elements b = InputOf(work, work.b.input, buffers);
    const uint64_t offset = task.batch.offsets[kProductB];
    const uint64_t first = task.column + column;
    const uint64_t width = kernels_.panel_columns;
    if (work.image.has_value()) {
      const ImageRows rows(kernels_, *work.image, b, offset, first, columns);
      for (uint64_t k = 0; k < depth; ++k) {
        rows.Write(k0 + k, row);
        kernels_.pack_row(row, columns, to + k * width, depth * width);
      }
      return;
    }
    if (work.b.stride == 1) {
      for (uint64_t k = 0; k < depth; ++k) {
        const float* const from =
            b.Adjacent(offset + first + DepthOffset(work.b, k0 + k), columns, row);
        kernels_.pack_row(from, columns, to + k * width, depth * width);
      }
      return;
    }
    for (uint64_t panel = 0; panel < columns; panel += width) {
      PackPanel(kernels_, b, work.b, offset, first + panel, std::min(width, columns - panel), k0,
                depth, width, to + panel * depth);
    }
  }

  void Multiply(const Task& task, const RunBuffers& buffers) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    TaskMemory::Scope scope;
    const auto take = [&](uint64_t floats) {
      return reinterpret_cast<float*>(scope.Take(floats * sizeof(float)));
    };
    const StridedDim<1>& last = work.output_columns.back();
    const bool is_in_place = !work.is_half && work.output_columns.size() == 1 &&
                             (last.strides[0] == 1 || last.size == 1);
    ProductBlock block = {.rows = task.rows, .panel_rows = cut.panel_rows};
    if (is_in_place) {
      block.result =
          reinterpret_cast<float*>(buffers.outputs[0]) + OutputOffset(task) + task.column;
      block.result_stride = work.output_row_stride;
    } else {
      block.result = take(task.rows * task.columns);
      block.result_stride = task.columns;
    }
    block.finish = FinishOf(task, buffers, take);
    if (cut.method == ProductMethod::kDots || cut.method == ProductMethod::kRow) {
      MultiplyRow(task, buffers, take, block);
    } else if (cut.method == ProductMethod::kWindow) {
      MultiplyWindow(task, buffers, take, block);
    } else {
      MultiplyBlocks(task, buffers, take, block);
    }
    if (!is_in_place) Store(task, block.result, buffers, take);
  }

  uint64_t OutputOffset(const Task& task) const {
    const ProductWork& work = works_[task.product];
    return work.output_offset + task.batch.offsets[kProductOutput] +
           task.row * work.output_row_stride;
  }

  template <typename Take>
  ProductFinish FinishOf(const Task& task, const RunBuffers& buffers, Take take) const {
    const ProductWork& work = works_[task.product];
    ProductFinish finish = {.alpha = work.alpha, .beta = work.beta};
    if (!work.addend.has_value()) return finish;
    const ProductAddend& addend = *work.addend;
    const Elements elements = InputOf(work, addend.input, buffers);
    const uint64_t start = task.batch.offsets[kProductAddend] + task.row * addend.row_stride +
                           task.column * addend.column_stride;
    if (addend.column_stride == 0) {
      float* const rows = take(task.rows);
      for (uint64_t r = 0; r < task.rows; ++r) {
        rows[r] = work.beta * elements.At(start + r * addend.row_stride);
      }
      finish.row_addends = rows;
    } else if (addend.column_stride == 1 && !work.is_half) {
      finish.addend = elements.floats() + start;
      finish.addend_stride = addend.row_stride;
    } else {
      float* const matrix = take(task.rows * task.columns);
      for (uint64_t r = 0; r < task.rows; ++r) {
        const uint64_t row = start + r * addend.row_stride;
        for (uint64_t i = 0; i < task.columns; ++i) {
          matrix[r * task.columns + i] = elements.At(row + i * addend.column_stride);
        }
      }
      finish.addend = matrix;
      finish.addend_stride = task.columns;
    }
    return finish;
  }

  template <typename Take>
  void MultiplyBlocks(const Task& task, const RunBuffers& buffers, Take take,
                      ProductBlock& block) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    const uint64_t width = kernels_.panel_columns;
    // B is read in place as far as it fills whole panels.
    const uint64_t direct = cut.has_direct_b ? task.columns / width * width : 0;
    const uint64_t packed = task.columns - direct;
    const uint64_t padded_rows = RoundUp(task.rows, cut.panel_rows);
    float* const b = take(RoundUp(packed, width) * cut.block_depth);
    float* const row = take(packed);
    float* const a =
        cut.packs_first || cut.has_direct_a ? nullptr : take(padded_rows * cut.block_depth);
    for (uint64_t k0 = 0; k0 < std::max<uint64_t>(work.depth, 1); k0 += cut.block_depth) {
      block.depth = std::min(cut.block_depth, work.depth - k0);
      block.is_first = k0 == 0;
      block.is_last = k0 + cut.block_depth >= work.depth;
      if (cut.has_direct_a) {
        block.a = InputOf(work, work.a.input, buffers).floats() + task.batch.offsets[kProductA] +
                  task.row * work.a.stride + k0;
        block.a_stride = work.a.stride;
      } else if (cut.packs_first) {
        block.a = PackedA(task, buffers) + BlockOffset(cut, k0) + task.row * block.depth;
      } else {
        PackRows(task, buffers, k0, block.depth, a);
        block.a = a;
      }
      if (direct > 0) {
        ProductBlock part = block;
        part.columns = direct;
        part.b = InputOf(work, work.b.input, buffers).floats() + task.batch.offsets[kProductB] +
                 task.column + k0 * work.b.depth_stride;
        part.b_stride = work.b.depth_stride;
        part.b_panel = width;
        part.b_comes_once = true;
        kernels_.multiply(part);
      }
      if (packed == 0) continue;
      ProductBlock part = block;
      PackB(task, buffers, direct, packed, k0, block.depth, row, b);
      part.columns = packed;
      part.b = b;
      part.b_stride = width;
      part.b_panel = width * block.depth;
      part.result += direct;
      if (part.finish.addend != nullptr) part.finish.addend += direct;
      kernels_.multiply(part);
    }
  }

  template <typename Take>
  void MultiplyRow(const Task& task, const RunBuffers& buffers, Take take,
                   const ProductBlock& block) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    const Elements a = InputOf(work, work.a.input, buffers);
    const uint64_t a_offset = task.batch.offsets[kProductA];
    const float* row = a.floats() + a_offset;
    if (work.a.depth_stride != 1 || !work.a.tap_offsets.empty()) {
      float* const packed = take(work.depth);
      for (uint64_t k = 0; k < work.depth; ++k) packed[k] = a.At(a_offset + DepthOffset(work.a, k));
      row = packed;
    }
    const float* const b = InputOf(work, work.b.input, buffers).floats() +
                           task.batch.offsets[kProductB] + task.column * work.b.stride;
    float* const part = take(task.columns);
    for (uint64_t k0 = 0; k0 < work.depth; k0 += cut.block_depth) {
      const uint64_t depth = std::min(cut.block_depth, work.depth - k0);
      float* const sums = k0 == 0 ? block.result : part;
      if (cut.method == ProductMethod::kDots) {
        kernels_.dots(row + k0, b + k0, work.b.stride, task.columns, depth, sums);
      } else {
        kernels_.weigh_rows(row + k0, b + k0 * work.b.depth_stride, work.b.depth_stride, depth,
                            task.columns, sums);
      }
      for (uint64_t i = 0; i < task.columns && k0 > 0; ++i) block.result[i] += part[i];
    }
    const ProductFinish& finish = block.finish;
    for (uint64_t i = 0; i < task.columns; ++i) {
      float sum = finish.alpha * block.result[i];
      if (finish.row_addends != nullptr) sum += finish.row_addends[0];
      if (finish.addend != nullptr) sum += finish.beta * finish.addend[i];
      block.result[i] = sum;
    }
  }

  // Lines of the image are copied with their padding, as many phases of them as outputs are apart,
  // so that all taps of adjacent outputs are adjacent.
  template <typename Take>
  void MultiplyWindow(const Task& task, const RunBuffers& buffers, Take take,
                      const ProductBlock& block) const {
    constexpr uint64_t kBandFloats = uint64_t{1} << 15;
    constexpr uint64_t kSlack = 64;  // what `weigh` reads behind the end
    const ProductWork& work = works_[task.product];
    const ProductImage& image = *work.image;
    const auto& axes = image.axes;
    const Elements a = InputOf(work, work.a.input, buffers);
    const uint64_t taps = work.depth;
    float* const weights = take(task.rows * taps);
    for (uint64_t r = 0; r < task.rows; ++r) {
      for (uint64_t t = 0; t < taps; ++t) {
        weights[r * taps + t] = a.At(task.batch.offsets[kProductA] +
                                     (task.row + r) * work.a.stride + DepthOffset(work.a, t));
      }
    }
    std::array<int64_t, 3> low = image.taps[0];
    std::array<int64_t, 3> high = image.taps[0];
    for (const auto& tap : image.taps) {
      for (size_t axis = 0; axis < 3; ++axis) {
        low[axis] = std::min(low[axis], tap[axis]);
        high[axis] = std::max(high[axis], tap[axis]);
      }
    }
    const uint64_t step = axes[2].step;
    const uint64_t width = axes[2].outputs + static_cast<uint64_t>(high[2] - low[2]) / step;
    const uint64_t planes = static_cast<uint64_t>(high[0] - low[0]) + 1;
    const uint64_t span = static_cast<uint64_t>(high[1] - low[1]) + 1;
    const uint64_t band = std::clamp<uint64_t>(kBandFloats / (width * step * planes * axes[1].step),
                                               1, axes[1].outputs);
    const uint64_t lines = (band - 1) * axes[1].step + span;
    float* const copies = take(planes * lines * step * width + kSlack);
    std::vector<const float*> from(taps);
    const Elements b = InputOf(work, work.b.input, buffers);
    const uint64_t channel = task.batch.offsets[kProductB];
    const ImageRows rows(kernels_, image, b, channel, 0, 0);
    for (uint64_t z = 0; z < axes[0].outputs; ++z) {
      for (uint64_t y0 = 0; y0 < axes[1].outputs; y0 += band) {
        const uint64_t y_end = std::min(y0 + band, axes[1].outputs);
        const uint64_t used = (y_end - y0 - 1) * axes[1].step + span;
        const int64_t z_first = static_cast<int64_t>(z * axes[0].step) + low[0];
        const int64_t y_first = static_cast<int64_t>(y0 * axes[1].step) + low[1];
        for (uint64_t i = 0; i < planes * used; ++i) {
          const uint64_t line = i / used * lines + i % used;
          for (uint64_t phase = 0; phase < step; ++phase) {
            rows.WriteLine(channel, z_first + static_cast<int64_t>(i / used),
                           y_first + static_cast<int64_t>(i % used), 0,
                           low[2] + static_cast<int64_t>(phase), width,
                           copies + (line * step + phase) * width);
          }
        }
        for (uint64_t y = y0; y < y_end; ++y) {
          for (uint64_t t = 0; t < taps; ++t) {
            const std::array<int64_t, 3>& tap = image.taps[t];
            const uint64_t line = static_cast<uint64_t>(tap[0] - low[0]) * lines +
                                  (y - y0) * axes[1].step + static_cast<uint64_t>(tap[1] - low[1]);
            const uint64_t along = static_cast<uint64_t>(tap[2] - low[2]);
            from[t] = copies + (line * step + along % step) * width + along / step;
          }
          float* const result = block.result + (z * axes[1].outputs + y) * axes[2].outputs;
          for (uint64_t r = 0; r < task.rows; ++r) {
            const float* const addends = block.finish.row_addends;
            kernels_.weigh(from.data(), weights + r * taps, taps,
                           addends == nullptr ? 0.0f : addends[r], axes[2].outputs,
                           result + r * block.result_stride);
          }
        }
      }
    }
  }

  // Rounds the results once, and stores them.
  template <typename Take>
  void Store(const Task& task, const float* results, const RunBuffers& buffers, Take take) const {
    const ProductWork& work = works_[task.product];
    uint16_t* const halves = reinterpret_cast<uint16_t*>(take(work.is_half ? task.columns : 0));
    const uint64_t stride = work.output_columns.back().strides[0];
    for (uint64_t r = 0; r < task.rows; ++r) {
      const float* const row = results + r * task.columns;
      const uint64_t start = OutputOffset(task) + r * work.output_row_stride;
      if (work.is_half) HalvesFromFloats(row, halves, task.columns);
      ColumnWalk walk(work.output_columns, task.column);
      for (uint64_t done = 0; done < task.columns;) {
        const uint64_t count = std::min(walk.left(), task.columns - done);
        const uint64_t to = start + walk.offset();
        if (work.is_half) {
          Copy(halves + done, count, reinterpret_cast<uint16_t*>(buffers.outputs[0]) + to, stride);
        } else {
          Copy(row + done, count, reinterpret_cast<float*>(buffers.outputs[0]) + to, stride);
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

  const MatrixKernels kernels_;
  const std::vector<ProductWork> works_;
  std::vector<ProductCut> cuts_;
};

}  // namespace

std::unique_ptr<const CpuProgram> MakeProductProgram(std::vector<ProductWork> works) {
  return std::make_unique<ProductProgram>(std::move(works));
}

}  // namespace opmill
