#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/element_dispatch.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/operators/elementwise/element_wise_kernels.h"
#include "kernels/operators/window/pooling_desc.h"
#include "kernels/operators/window/pooling_kernels.h"
#include "kernels/reference/element_access.h"

namespace opmill {
namespace {

// Of a task. Each thread reads what it has written in the step before, if there are several tasks.
constexpr uint64_t kMostElements = uint64_t{1} << 16;
constexpr uint64_t kLeastElements = uint64_t{1} << 12;
constexpr uint64_t kWantedTasks = 4;
// Of the part of a row, or the rows, that are computed at a time: they stay in the first cache.
constexpr uint64_t kTileColumns = 1024;
// Rows of a window that are joined at a time.
constexpr uint64_t kJoinedRows = 8;

// A task computes several rows of results.
class PoolingProgram : public CpuProgram {
 public:
  explicit PoolingProgram(PoolingDesc desc)
      : desc_(std::move(desc)),
        element_bytes_(ElementBytes(desc_.input.data_type)),
        averages_halves_(desc_.function == PoolingFunction::kAverage &&
                         desc_.input.data_type == DataType::kFloat16),
        value_bytes_(averages_halves_ ? sizeof(float) : element_bytes_),
        kernels_(desc_.function == PoolingFunction::kAverage
                     ? AveragePoolingKernels()
                     : MaxPoolingKernels(desc_.input.data_type)) {
    const WindowDim& width = desc_.windows[kWidth];
    tile_results_ = std::max<uint64_t>(1, kTileColumns / width.stride);
    row_results_ = desc_.output.sizes[kWidth];
    rows_ = ElementCount(desc_.output) / row_results_;
    const uint64_t window_rows = WindowRows();
    const uint64_t columns =
        std::min<uint64_t>(desc_.input.sizes[kWidth], row_results_ * width.stride + width.extent());
    const uint64_t work = window_rows * columns + row_results_ * width.window;
    const uint64_t elements =
        std::clamp(rows_ * work / kWantedTasks, kLeastElements, kMostElements);
    rows_a_task_ = std::max<uint64_t>(1, elements / work);
    phases_ = {CeilDiv(rows_, rows_a_task_)};
    cost_bytes_ = rows_ * work * element_bytes_;
    tile_results_ = std::min(tile_results_, row_results_);
    const uint64_t slot = SlotOf(tile_results_);
    if (tile_results_ == row_results_ && !desc_.indices.has_value()) {
      tile_lines_ = std::max<uint64_t>(1, kTileColumns / slot);
    }
    task_bytes_ = slot * 2 * (tile_lines_ + kJoinedRows) * value_bytes_ + 4 * kPoolingVectorBytes;
    if (desc_.function == PoolingFunction::kAverage && desc_.divisor() == 0) {
      for (uint64_t x = 0; x < row_results_; ++x) {
        counts_.push_back(static_cast<float>(width.ElementsOf(x, desc_.input.sizes[kWidth]).count));
      }
    }
  }

  void Run(size_t /*phase*/, uint64_t task, const RunBuffers& buffers) const override {
    const uint64_t first = task * rows_a_task_;
    const uint64_t end = std::min(first + rows_a_task_, rows_);
    for (uint64_t row = first; row < end;) {
      Coordinates at = {};
      uint64_t rest = row;
      for (size_t d = kWidth; d-- > 0;) {
        at[d] = rest % desc_.output.sizes[d];
        rest /= desc_.output.sizes[d];
      }
      const uint64_t lines = std::min(tile_lines_, end - row);
      row += lines;
      if (desc_.indices.has_value()) {
        RunIndexedRow(at, buffers);
        continue;
      }
      for (at[kWidth] = 0; at[kWidth] < row_results_; at[kWidth] += tile_results_) {
        RunTile(at, lines, std::min(tile_results_, row_results_ - at[kWidth]), buffers);
      }
    }
  }

 private:
  using Coordinates = std::array<uint64_t, PoolingDesc::kRank>;
  static constexpr size_t kDepth = 2;
  static constexpr size_t kHeight = 3;
  static constexpr size_t kWidth = 4;

  // The most rows of a window that are in the input.
  uint64_t WindowRows() const {
    uint64_t rows = 1;
    for (const size_t d : {kDepth, kHeight}) {
      rows *= std::min(desc_.windows[d].window, desc_.input.sizes[d]);
    }
    return rows;
  }

  uint64_t OffsetOf(const TensorDesc& tensor, const Coordinates& at) const {
    uint64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * tensor.strides[d];
    return offset;
  }

  // Calls visit(offset of the element at depth z, height y and width 0, z, y) for the rows of the
  // window of a result that are in the input.
  template <typename Visit>
  void ForEachWindowRow(const Coordinates& result, Visit visit) const {
    const std::vector<uint32_t>& strides = desc_.input.strides;
    const auto elements = [&](size_t d) {
      return desc_.windows[d].ElementsOf(result[d], desc_.input.sizes[d]);
    };
    const WindowDim::Elements depth = elements(kDepth);
    const WindowDim::Elements height = elements(kHeight);
    const uint64_t image = result[0] * strides[0] + result[1] * strides[1];
    for (uint64_t j = 0; j < depth.count; ++j) {
      const uint64_t z = depth.first + j * desc_.windows[kDepth].dilation;
      for (uint64_t i = 0; i < height.count; ++i) {
        const uint64_t y = height.first + i * desc_.windows[kHeight].dilation;
        visit(image + z * strides[kDepth] + y * strides[kHeight], z, y);
      }
    }
  }

  // Lines of results from `line` on, at most `most`, whose windows have the same rows, each in the
  // input.
  uint64_t EqualLines(uint64_t line, uint64_t most) const {
    const WindowDim& height = desc_.windows[kHeight];
    const auto is_whole = [&](uint64_t result) {
      return height.ElementsOf(result, desc_.input.sizes[kHeight]).count == height.window;
    };
    most = std::min(most, desc_.output.sizes[kHeight] - line);
    uint64_t lines = 0;
    while (lines < most && is_whole(line + lines)) ++lines;
    return WindowRows() > kJoinedRows ? 1 : std::max<uint64_t>(lines, 1);
  }

  // By so many rows, at most those that are left of the plane.
  void Advance(Coordinates& at, uint64_t rows) const {
    at[kHeight] += rows - 1;
    for (size_t d = kHeight; ++at[d] == desc_.output.sizes[d] && d > 0; --d) at[d] = 0;
  }

  // `count` results of each of `lines` rows that follow each other, which all begin at `first`.
  void RunTile(const Coordinates& first, uint64_t lines, uint64_t count,
               const RunBuffers& buffers) const {
    const WindowDim& width = desc_.windows[kWidth];
    const uint64_t slot = SlotOf(count);
    const uint64_t values = slot / width.stride;  // of a row, with some between the rows
    // The columns of a row that are in the input, and how many padding ones are before them.
    const uint64_t padded = first[kWidth] * width.stride;
    const uint64_t skipped = std::min<uint64_t>(padded, width.start_padding);
    const uint64_t before = std::min(slot, width.start_padding - skipped);
    const uint64_t low = padded - skipped;
    const uint64_t size = desc_.input.sizes[kWidth];
    const uint64_t columns = std::min(size - std::min(low, size), slot - before);
    TaskMemory::Scope memory;
    std::byte* const joined =
        memory.Take((lines * slot + width.extent()) * value_bytes_ + 2 * kPoolingVectorBytes);
    const bool is_plain = desc_.input.strides[kWidth] == 1 && !averages_halves_;
    std::byte* const packed = memory.Take(is_plain ? 0 : kJoinedRows * columns * value_bytes_);
    std::byte* const joined_values =
        memory.Take(lines * values * value_bytes_ + kPoolingVectorBytes);
    auto* const divisors = reinterpret_cast<float*>(memory.Take(lines * sizeof(float)));
    std::array<const void*, kJoinedRows> elements = {};
    Coordinates at = first;
    for (uint64_t line = 0, run = 1; line < lines; line += run, Advance(at, run)) {
      std::byte* const to = joined + line * slot * value_bytes_;
      run = is_plain ? EqualLines(at[kHeight], lines - line) : 1;
      PoolingRows rows = {
          .rows = elements.data(),
          .before = before,
          .count = columns,
          .after = slot - before - columns,
          .lines = run,
          .line_stride = desc_.windows[kHeight].stride * uint64_t{desc_.input.strides[kHeight]}};
      uint64_t row_count = 0;
      ForEachWindowRow(at, [&](uint64_t offset, uint64_t, uint64_t) {
        if (rows.row_count == kJoinedRows) {
          kernels_.join(rows, to);
          rows.row_count = 0;
          rows.adds = true;
        }
        const uint64_t begin = offset + low * desc_.input.strides[kWidth];
        const std::byte* const from = buffers.inputs[0] + begin * element_bytes_;
        std::byte* const copy = packed + rows.row_count * columns * value_bytes_;
        elements[rows.row_count++] = is_plain ? from : Pack(from, columns, copy);
        ++row_count;
      });
      kernels_.join(rows, to);
      std::fill_n(divisors + line, run,
                  static_cast<float>(counts_.empty() ? desc_.divisor() : row_count));
    }
    kernels_.pool({.columns = joined,
                   .step = width.stride,
                   .window = width.window,
                   .dilation = width.dilation,
                   .count = (lines - 1) * values + count,
                   .values = joined_values});
    at = first;
    for (uint64_t line = 0, run = 1; line < lines; line += run, Advance(at, run)) {
      const uint64_t most = std::min(lines - line, desc_.output.sizes[kHeight] - at[kHeight]);
      const float* const divisor = divisors + line;
      run = static_cast<uint64_t>(
          std::find_if(divisor, divisor + most, [&](float each) { return each != *divisor; }) -
          divisor);
      Finish(joined_values + line * values * value_bytes_,
             {.divisor = *divisor,
              .counts = counts_.empty() ? nullptr : counts_.data() + first[kWidth]},
             {.count = count,
              .lines = run,
              .value_stride = values,
              .result_stride = desc_.output.strides[kHeight]},
             buffers.outputs[0] + OffsetOf(desc_.output, at) * element_bytes_);
    }
  }

  // The columns of a row of results, and those until the next row's. Multiples of the step.
  uint64_t SlotOf(uint64_t results) const {
    const WindowDim& width = desc_.windows[kWidth];
    return RoundUp((results - 1) * width.stride + width.extent(), width.stride);
  }

  void Finish(const std::byte* values, const PoolingDivisors& divisors, const PoolingLines& lines,
              std::byte* to) const {
    const uint64_t stride = desc_.output.strides[kWidth];
    if (stride == 1 && !averages_halves_) {
      kernels_.finish(values, divisors, lines, to);
      return;
    }
    const uint64_t count = lines.count;
    TaskMemory::Scope memory;
    std::byte* const results = memory.Take(count * value_bytes_);
    std::byte* const halves = memory.Take(averages_halves_ ? count * element_bytes_ : 0);
    for (uint64_t line = 0; line < lines.lines; ++line) {
      kernels_.finish(values + line * lines.value_stride * value_bytes_, divisors, {.count = count},
                      results);
      if (averages_halves_) {
        HalvesFromFloats(reinterpret_cast<const float*>(results),
                         reinterpret_cast<uint16_t*>(halves), count);
      }
      std::byte* const row = to + line * lines.result_stride * element_bytes_;
      for (uint64_t i = 0; i < count; ++i) {
        CopyElement(row + i * stride * element_bytes_,
                    (averages_halves_ ? halves : results) + i * element_bytes_, element_bytes_);
      }
    }
  }

  // Makes adjacent values of the elements.
  const std::byte* Pack(const std::byte* from, uint64_t columns, std::byte* to) const {
    const uint64_t stride = desc_.input.strides[kWidth];
    if (averages_halves_) {
      const auto* const halves = reinterpret_cast<const uint16_t*>(from);
      auto* const floats = reinterpret_cast<float*>(to);
      if (stride == 1) {
        FloatsFromHalves(halves, floats, columns);
      } else {
        for (uint64_t i = 0; i < columns; ++i) floats[i] = HalfToFloat(halves[i * stride]);
      }
      return to;
    }
    for (uint64_t i = 0; i < columns; ++i) {
      CopyElement(to + i * element_bytes_, from + i * stride * element_bytes_, element_bytes_);
    }
    return to;
  }

  // One element at a time.
  void RunIndexedRow(Coordinates at, const RunBuffers& buffers) const {
    const DataType type = desc_.input.data_type;
    const TensorDesc& input = desc_.input;
    const WindowDim& width = desc_.windows[kWidth];
    const std::vector<uint32_t> positions = PackedStrides(input.sizes);
    for (at[kWidth] = 0; at[kWidth] < row_results_; ++at[kWidth]) {
      const WindowDim::Elements across = width.ElementsOf(at[kWidth], input.sizes[kWidth]);
      uint64_t bits = LowestBits(type);
      uint64_t largest_key = 0;
      uint64_t position = kNoPoolingIndex;
      ForEachWindowRow(at, [&](uint64_t offset, uint64_t z, uint64_t y) {
        for (uint64_t k = 0; k < across.count; ++k) {
          const uint64_t x = across.first + k * width.dilation;
          const std::byte* const element =
              buffers.inputs[0] + (offset + x * input.strides[kWidth]) * element_bytes_;
          uint64_t here = 0;
          std::memcpy(&here, element, element_bytes_);
          here = SignExtended(type, here);
          const bool is_nan = IsNan(type, here);
          const uint64_t key =
              is_nan ? std::numeric_limits<uint64_t>::max() : TotalOrderKey(type, here);
          if (position != kNoPoolingIndex && key <= largest_key) continue;
          largest_key = key;
          bits = is_nan ? CanonicalNan(type) : here;
          position = at[0] * positions[0] + at[1] * positions[1] + z * positions[kDepth] +
                     y * positions[kHeight] + x;
        }
      });
      std::memcpy(buffers.outputs[0] + OffsetOf(desc_.output, at) * element_bytes_, &bits,
                  element_bytes_);
      const uint32_t index_bytes = ElementBytes(desc_.indices->data_type);
      std::memcpy(buffers.outputs[1] + OffsetOf(*desc_.indices, at) * index_bytes, &position,
                  index_bytes);
    }
  }

  const PoolingDesc desc_;
  const uint32_t element_bytes_;
  const bool averages_halves_;
  const uint32_t value_bytes_;  // of what the kernel computes
  const PoolingKernels kernels_;
  uint64_t tile_results_ = 1;
  uint64_t row_results_ = 1;
  uint64_t tile_lines_ = 1;
  std::vector<float> counts_;  // of averages without padding: elements along the width
  uint64_t rows_ = 1;
  uint64_t rows_a_task_ = 1;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuPooling(const OperatorDesc& validated) {
  return std::make_unique<PoolingProgram>(PoolingDesc::From(validated));
}

}  // namespace opmill
