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
#include "kernels/operators/matrix/product_output.h"
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
  // Of kLines, which column and columns are.
  uint64_t z = 0;
  uint64_t line = 0;
  uint64_t lines = 0;
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
    kept_.resize(works_.size());
    scratch_bytes_ = scratch * sizeof(float);
    if (packs > 0) phases_.push_back(packs);
    phases_.push_back(tasks);
    task_bytes_ = sizeof(float) * 3 * kBlockElements;
  }

  // In panels. One row is multiplied with B in place, which is read only once.
  bool CanKeep(size_t input) const override {
    for (size_t p = 0; p < works_.size(); ++p) {
      const bool is_row =
          cuts_[p].method == ProductMethod::kDots || cuts_[p].method == ProductMethod::kRow;
      if (works_[p].a.input == input && (is_row || cuts_[p].has_direct_a)) return false;
      if (works_[p].b.input == input && (is_row || works_[p].image.has_value())) return false;
      if (works_[p].addend.has_value() && works_[p].addend->input == input) return false;
    }
    return true;
  }

  void Keep(size_t input, const std::byte* bytes) override {
    for (size_t p = 0; p < works_.size(); ++p) {
      if (works_[p].a.input == input) KeepA(p, bytes);
      if (works_[p].b.input == input) KeepB(p, bytes);
    }
  }

  // One, and rows of a task must be adjacent elements.
  bool Follow(std::unique_ptr<const CpuFollower>& follower) override {
    const Dims<1>& columns = works_[0].output_columns;
    if (follower_ != nullptr || works_.size() > 1 || columns.size() > 1 ||
        (columns[0].strides[0] != 1 && columns[0].size > 1)) {
      return false;
    }
    follower_ = std::move(follower);
    return true;
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
  static constexpr uint64_t kSlack = 64;  // what kernels read behind the end of lines

  // What runs would pack.
  struct Kept {
    std::unique_ptr<float[]> a;
    std::unique_ptr<float[]> b;
  };

  // Calls pack(task) for a task with each different A, or B.
  template <typename Pack>
  void ForEachCopy(size_t product, uint64_t BatchPlace::*copy, const Pack& pack) const {
    const ProductWork& work = works_[product];
    Task task = {.product = product, .rows = work.rows, .columns = work.columns};
    uint64_t next = 0;
    for (uint64_t batch = 0; batch < CountOf(work.batches); ++batch) {
      task.batch = PlaceOf(work, batch, /*of_copies=*/false);
      if (task.batch.*copy < next) continue;
      next = task.batch.*copy + 1;
      pack(task);
    }
  }

  std::unique_ptr<float[]> Allocate(uint64_t copies, uint64_t floats) {
    kept_bytes_ += copies * floats * sizeof(float);
    return std::make_unique<float[]>(copies * floats);
  }

  void KeepA(size_t product, const std::byte* bytes) {
    const ProductWork& work = works_[product];
    ProductCut& cut = cuts_[product];
    RunBuffers buffers;
    buffers.inputs[work.a.input] = bytes;
    kept_[product].a = Allocate(CopiesOf(work, kProductA), AFloats(product));
    ForEachCopy(product, &BatchPlace::copy, [&](const Task& task) {
      if (cut.method == ProductMethod::kWindow) {
        WriteWeights(task, buffers, PackedA(task, buffers));
      } else {
        PackA(task, buffers);
      }
    });
    if (cut.packs == 0) return;
    phases_[0] -= cut.packs;
    cut.packs = 0;
    if (phases_[0] > 0) return;
    phases_.erase(phases_.begin());
    scratch_bytes_ = 0;
  }

  void KeepB(size_t product, const std::byte* bytes) {
    const ProductWork& work = works_[product];
    RunBuffers buffers;
    buffers.inputs[work.b.input] = bytes;
    kept_[product].b = Allocate(CopiesOf(work, kProductB), BFloats(product));
    std::vector<float> row(work.columns);
    ForEachCopy(product, &BatchPlace::b_copy, [&](const Task& task) {
      for (uint64_t k0 = 0; k0 < work.depth; k0 += cuts_[product].block_depth) {
        const uint64_t depth = std::min(cuts_[product].block_depth, work.depth - k0);
        PackB(task, buffers, 0, work.columns, k0, depth, row.data(), KeptB(task, k0));
      }
    });
  }

  uint64_t AFloats(size_t product) const {
    const ProductCut& cut = cuts_[product];
    const bool is_window = cut.method == ProductMethod::kWindow;
    return works_[product].depth *
           (is_window ? works_[product].rows : cut.row_panels * cut.panel_rows);
  }
  uint64_t BFloats(size_t product) const {
    return RoundUp(works_[product].columns, kernels_.panel_columns) * works_[product].depth;
  }
  float* KeptB(const Task& task, uint64_t k0) const {
    return kept_[task.product].b.get() + task.batch.b_copy * BFloats(task.product) +
           k0 * RoundUp(works_[task.product].columns, kernels_.panel_columns);
  }

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
    const uint64_t column_parts = ColumnPartsOf(work, cut);
    const uint64_t row_parts = CeilDiv(work.rows, cut.rows);
    const uint64_t part = index % column_parts;
    const uint64_t row = index / column_parts % row_parts * cut.rows;
    const uint64_t first = index / column_parts / row_parts * cut.batches;
    Task task = {.product = product, .row = row, .rows = std::min(cut.rows, work.rows - row)};
    if (cut.method == ProductMethod::kLines) {
      const auto& axes = work.image->axes;
      task.z = part / cut.bands;
      task.line = part % cut.bands * cut.band_lines;
      task.lines = std::min(cut.band_lines, axes[1].outputs - task.line);
      task.column = (task.z * axes[1].outputs + task.line) * axes[2].outputs;
      task.columns = task.lines * axes[2].outputs;
    } else {
      task.column = part * cut.columns;
      task.columns = std::min(cut.columns, work.columns - task.column);
    }
    const uint64_t end = std::min(first + cut.batches, CountOf(work.batches));
    FollowedRange followed(follower_.get(), buffers);
    for (uint64_t batch = first; batch < end; ++batch) {
      task.batch = PlaceOf(work, batch, /*of_copies=*/false);
      Multiply(task, buffers);
      if (follower_ != nullptr) AddRows(task, followed);
    }
  }

  void AddRows(const Task& task, FollowedRange& followed) const {
    const uint64_t first = OutputOffset(task) + task.column;
    for (uint64_t r = 0; r < task.rows; ++r) {
      followed.Add(first + r * works_[task.product].output_row_stride, task.columns);
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
    float* const kept = kept_[task.product].a.get();
    float* const packed =
        kept != nullptr ? kept
                        : reinterpret_cast<float*>(buffers.scratch) + cuts_[task.product].scratch;
    return packed + task.batch.copy * AFloats(task.product);
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
    } else if (cut.method == ProductMethod::kLines) {
      MultiplyLines(task, buffers, take, block);
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

  // Whether each task packs its rows of A.
  bool PacksA(size_t product) const {
    const ProductCut& cut = cuts_[product];
    return !cut.packs_first && !cut.has_direct_a && kept_[product].a == nullptr;
  }

  // A for a block of K. `own` is where the task packs it.
  void FindA(const Task& task, const RunBuffers& buffers, uint64_t k0, float* own,
             ProductBlock& block) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    if (cut.has_direct_a) {
      block.a = InputOf(work, work.a.input, buffers).floats() + task.batch.offsets[kProductA] +
                task.row * work.a.stride + k0;
      block.a_stride = work.a.stride;
    } else if (PacksA(task.product)) {
      PackRows(task, buffers, k0, block.depth, own);
      block.a = own;
    } else {
      block.a = PackedA(task, buffers) + BlockOffset(cut, k0) + task.row * block.depth;
    }
  }

  template <typename Take>
  void MultiplyBlocks(const Task& task, const RunBuffers& buffers, Take take,
                      ProductBlock& block) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    const uint64_t width = kernels_.panel_columns;
    // B is read in place as far as it fills whole panels.
    const Kept& kept = kept_[task.product];
    const bool is_kept = kept.b != nullptr;
    const uint64_t direct = cut.has_direct_b && !is_kept ? task.columns / width * width : 0;
    const uint64_t packed = task.columns - direct;
    const uint64_t padded_rows = RoundUp(task.rows, cut.panel_rows);
    const bool packs_a = PacksA(task.product);
    float* const b = is_kept ? nullptr : take(RoundUp(packed, width) * cut.block_depth);
    float* const row = is_kept ? nullptr : take(packed);
    float* const a = packs_a ? take(padded_rows * cut.block_depth) : nullptr;
    for (uint64_t k0 = 0; k0 < std::max<uint64_t>(work.depth, 1); k0 += cut.block_depth) {
      block.depth = std::min(cut.block_depth, work.depth - k0);
      block.is_first = k0 == 0;
      block.is_last = k0 + cut.block_depth >= work.depth;
      FindA(task, buffers, k0, a, block);
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
      part.columns = packed;
      if (is_kept) {
        part.b = KeptB(task, k0) + task.column * block.depth;
      } else {
        PackB(task, buffers, direct, packed, k0, block.depth, row, b);
        part.b = b;
      }
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

  void WriteWeights(const Task& task, const RunBuffers& buffers, float* to) const {
    const ProductWork& work = works_[task.product];
    const Elements a = InputOf(work, work.a.input, buffers);
    for (uint64_t r = 0; r < task.rows; ++r) {
      for (uint64_t t = 0; t < work.depth; ++t) {
        *to++ = a.At(task.batch.offsets[kProductA] + (task.row + r) * work.a.stride +
                     DepthOffset(work.a, t));
      }
    }
  }

  template <typename Take>
  void MultiplyWindow(const Task& task, const RunBuffers& buffers, Take take,
                      const ProductBlock& block) const {
    const ProductWork& work = works_[task.product];
    const ProductImage& image = *work.image;
    const auto& axes = image.axes;
    const uint64_t taps = work.depth;
    const float* weights = nullptr;
    if (kept_[task.product].a != nullptr) {
      weights = PackedA(task, buffers) + task.row * taps;
    } else {
      float* const own = take(task.rows * taps);
      WriteWeights(task, buffers, own);
      weights = own;
    }
    const ImageLines& lines = cuts_[task.product].lines;
    const uint64_t band = cuts_[task.product].band_lines;
    float* const copies = take(lines.channel_floats + kSlack);
    const bool is_whole = lines.width == lines.outputs;
    float* const padded = take(is_whole ? 0 : lines.SpanOf(band));
    std::vector<const float*> from(taps);
    for (uint64_t t = 0; t < taps; ++t) from[t] = copies + lines.tap_offsets[t];
    const Elements b = InputOf(work, work.b.input, buffers);
    const ImageRows rows(kernels_, image, b, 0, 0, 0);
    for (uint64_t z = 0; z < axes[0].outputs; ++z) {
      for (uint64_t y = 0; y < axes[1].outputs; y += band) {
        const uint64_t count = std::min(band, axes[1].outputs - y);
        lines.Write(rows, task.batch.offsets[kProductB], z, y, count, copies);
        for (uint64_t r = 0; r < task.rows; ++r) {
          const float* const addends = block.finish.row_addends;
          float* const result =
              block.result + r * block.result_stride + (z * axes[1].outputs + y) * axes[2].outputs;
          float* const to = is_whole ? result : padded;
          kernels_.weigh(from.data(), weights + r * taps, taps,
                         addends == nullptr ? 0.0f : addends[r], lines.SpanOf(count), to);
          if (!is_whole) CopyLines(lines, padded, count, result);
        }
      }
    }
  }

  // Without what is between the lines.
  static void CopyLines(const ImageLines& lines, const float* from, uint64_t count, float* to) {
    for (uint64_t line = 0; line < count; ++line) {
      std::memcpy(to + line * lines.outputs, from + line * lines.width,
                  lines.outputs * sizeof(float));
    }
  }

  template <typename Take>
  void MultiplyLines(const Task& task, const RunBuffers& buffers, Take take,
                     const ProductBlock& whole) const {
    const ProductWork& work = works_[task.product];
    const ProductCut& cut = cuts_[task.product];
    const ImageLines& lines = cut.lines;
    const uint64_t taps = lines.tap_offsets.size();
    const uint64_t most_channels = cut.block_depth / taps;
    const bool is_whole = lines.width == lines.outputs;
    ProductBlock block = whole;
    block.columns = lines.SpanOf(task.lines);
    block.b_panel = kernels_.panel_columns;
    if (!is_whole) {
      block.result_stride = RoundUp(block.columns, kernels_.panel_columns);
      block.result = take(task.rows * block.result_stride);
    }
    float* const copies = take(most_channels * lines.channel_floats + kSlack);
    const bool packs_a = PacksA(task.product);
    const uint64_t padded_rows = RoundUp(task.rows, cut.panel_rows);
    float* const a = packs_a ? take(padded_rows * cut.block_depth) : nullptr;
    std::vector<uint32_t> offsets(cut.block_depth);
    for (uint64_t k = 0; k < offsets.size(); ++k) {
      offsets[k] =
          static_cast<uint32_t>(k / taps * lines.channel_floats) + lines.tap_offsets[k % taps];
    }
    block.b = copies;
    block.b_offsets = offsets.data();
    const Elements b = InputOf(work, work.b.input, buffers);
    const ImageRows rows(kernels_, *work.image, b, 0, 0, 0);
    for (uint64_t k0 = 0; k0 < work.depth; k0 += cut.block_depth) {
      block.depth = std::min(cut.block_depth, work.depth - k0);
      block.is_first = k0 == 0;
      block.is_last = k0 + cut.block_depth >= work.depth;
      for (uint64_t c = 0; c < block.depth / taps; ++c) {
        lines.Write(rows,
                    task.batch.offsets[kProductB] + (k0 / taps + c) * work.image->channel_stride,
                    task.z, task.line, task.lines, copies + c * lines.channel_floats);
      }
      FindA(task, buffers, k0, a, block);
      kernels_.multiply(block);
    }
    if (is_whole) return;
    for (uint64_t r = 0; r < task.rows; ++r) {
      CopyLines(lines, block.result + r * block.result_stride, task.lines,
                whole.result + r * whole.result_stride);
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
  std::vector<Kept> kept_;  // of each product
  std::unique_ptr<const CpuFollower> follower_;
};

}  // namespace

std::unique_ptr<CpuProgram> MakeProductProgram(std::vector<ProductWork> works) {
  return std::make_unique<ProductProgram>(std::move(works));
}

}  // namespace opmill
