#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/hash/hash.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/operators/reduction/fold_kernels.h"
#include "kernels/operators/reduction/fold_program.h"
#include "kernels/operators/reduction/fold_steps.h"

namespace opmill {
namespace {

constexpr uint64_t kLeastTaskBytes = uint64_t{256} << 10;
constexpr uint64_t kMostTaskBytes = uint64_t{4} << 20;
constexpr uint64_t kMostGatheredTaskBytes = uint64_t{1} << 20;  // with 4 MiB, a task takes 3 ms
constexpr uint64_t kBatchedSplit = uint64_t{1} << 16;
constexpr uint64_t kTasks = 64;     // enough for many processors, but few partial results
constexpr uint64_t kRowBatch = 64;  // rows in one call of `columns`
static_assert(kRowBatch % kRowGroup == 0);
constexpr uint64_t kHotBytes = 32768;  // of a tile of columns; stay in the L1 cache
constexpr uint64_t kPackedWidth = 128;
constexpr uint64_t kShortWidth = 1024;  // the widest tile, if there are few rows
constexpr uint64_t kPackedRow = 4096;
constexpr uint64_t kShortRow = 64;  // shorter rows are transposed and folded as columns

FoldKernels KernelsFor(const FoldWork& work) {
  switch (work.function) {
    case ReduceFunction::kArgMin:
    case ReduceFunction::kArgMax:
      return ArgKernels(work.function, work.type, work.last_wins, work.nan_is_last);
    case ReduceFunction::kMin:
    case ReduceFunction::kMax:
      return ExtremeKernels(work.function, work.type);
    case ReduceFunction::kLogSumExp:
      return LogSumExpKernels(work.type);
    default:
      return SumKernels(work.function, work.type);
  }
}

// Results are divided into tiles (of adjacent results along the last kept dimension, if columns are
// folded in place), and long reductions into splits. A unit is one split of one tile. A task
// consists of units of one split.
class FoldProgram : public CpuProgram {
 public:
  FoldProgram(FoldWork work, std::unique_ptr<FoldOutput> output)
      : work_(std::move(work)),
        kernels_(KernelsFor(work_)),
        output_(std::move(output)),
        element_bytes_(ElementBytes(work_.type)),
        results_(CountOf(work_.kept)),
        count_(CountOf(work_.reduced)) {
    ChooseMode();
    const uint64_t elements = results_ * count_;
    const uint64_t most = mode_ == FoldMode::kPackedRows || mode_ == FoldMode::kPackedColumns
                              ? kMostGatheredTaskBytes
                              : kMostTaskBytes;
    const uint64_t task =
        std::clamp(elements * element_bytes_ / kTasks, kLeastTaskBytes, most) / element_bytes_;
    // A tile of rows has the rows of one task.
    if (mode_ == FoldMode::kRows || mode_ == FoldMode::kPackedRows) {
      tile_ = std::clamp<uint64_t>(task / count_, 1, std::min<uint64_t>(results_, 1024));
    }
    tile_ = std::min(tile_, LineOf(work_.kept));
    tiles_per_line_ = CeilDiv(LineOf(work_.kept), tile_);
    tiles_ = results_ / LineOf(work_.kept) * tiles_per_line_;
    split_ = std::clamp<uint64_t>(work_.is_batched ? kBatchedSplit : task / tile_,
                                  std::min(count_, kRowBatch), count_);
    splits_ = CeilDiv(count_, split_);
    split_ = CeilDiv(count_, splits_);
    splits_ = CeilDiv(count_, split_);
    tiles_per_task_ = std::clamp<uint64_t>(task / (tile_ * split_), 1, tiles_);
    const uint64_t tasks = CeilDiv(tiles_, tiles_per_task_);
    phases_.push_back(tasks * splits_);
    partial_bytes_ = PaddedWidth(tile_) * kernels_.state_bytes;
    if (splits_ > 1) {
      phases_.push_back(tasks);
      scratch_bytes_ = tiles_ * splits_ * partial_bytes_;
    }
    const bool by_rows = mode_ == FoldMode::kRows || mode_ == FoldMode::kPackedRows;
    rounding_ = absl::HashOf(by_rows, split_, count_);
    fills_outputs_ = output_->Divide(mode_, splits_);
    const uint64_t weight = work_.function == ReduceFunction::kLogSumExp ? 4 : 1;
    cost_bytes_ = (elements * element_bytes_ + results_ * 16) * weight + output_->cost_bytes();
    if (mode_ != FoldMode::kRows && mode_ != FoldMode::kColumns) return;
    layout_ = LayoutOf(work_, output_->holds(), mode_ == FoldMode::kColumns, tile_, split_);
    if (!layout_.has_value()) return;
    step_bytes_ = FoldStepBytes(*layout_);
    state_bytes_ = FoldStateBytes(*layout_, kernels_);
  }

  std::unique_ptr<CpuSteps> Steps(const RunBuffers& buffers) const override {
    return MakeFoldSteps(*layout_, kernels_, *output_, buffers);
  }

  void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const override {
    const uint64_t split = phase == 0 ? task % splits_ : 0;
    const uint64_t first = (phase == 0 ? task / splits_ : task) * tiles_per_task_;
    const uint64_t end = std::min(first + tiles_per_task_, tiles_);
    TaskMemory::Scope memory;
    std::byte* own = splits_ == 1 ? memory.Take(partial_bytes_) : nullptr;
    std::byte* results = memory.Take(tile_ * 8);
    std::byte* packed = memory.Take(std::max(kPackedWidth * kRowBatch, kPackedRow) * 8);
    for (uint64_t tile = first; tile < end; ++tile) {
      const uint64_t line = tile / tiles_per_line_;
      const uint64_t at = tile % tiles_per_line_ * tile_;
      const uint64_t width = std::min(tile_, LineOf(work_.kept) - at);
      const uint64_t result = line * LineOf(work_.kept) + at;
      const auto partial = [&](uint64_t s) {
        return splits_ == 1 ? own : buffers.scratch + (tile * splits_ + s) * partial_bytes_;
      };
      if (phase == 0) {
        const uint64_t begin = split * split_;
        const uint64_t stop = std::min(begin + split_, count_);
        output_->Clear(result, width, begin, stop, buffers);
        kernels_.init(partial(split), width, begin);
        Fold(buffers.inputs[0], result, width, begin, stop, partial(split), packed);
        if (splits_ > 1) continue;
      } else {
        for (uint64_t s = 1; s < splits_; ++s) kernels_.merge(partial(0), partial(s), width);
      }
      kernels_.finish(partial(0), width, count_, results);
      output_->Store(results, result, width, buffers);
    }
    output_->FinishTask();
  }

 private:
  void ChooseMode() {
    const bool rows = !work_.reduced.empty() && work_.reduced.back().strides[kInputTensor] == 1;
    const bool columns = !work_.kept.empty() && work_.kept.back().strides[kInputTensor] == 1;
    const uint64_t run = rows ? work_.reduced.back().size : 0;
    if (rows && (run >= kShortRow || (results_ < 16 && !work_.is_batched))) {
      mode_ = FoldMode::kRows;
    } else if (columns && work_.kept.back().size >= 16) {
      mode_ = FoldMode::kColumns;
      tile_ = std::min<uint64_t>(kMaxColumnBytes / element_bytes_,
                                 kHotBytes / kernels_.hot_bytes / kStateStep * kStateStep);
    } else if (results_ < 16 && !work_.is_batched) {
      mode_ = FoldMode::kPackedRows;
    } else {
      mode_ = FoldMode::kPackedColumns;
      const uint64_t width = kPackedWidth * kRowBatch / std::min(count_, kRowBatch);
      tile_ = std::min(kShortWidth, width / kPackedWidth * kPackedWidth);
    }
  }

  // The number of consecutive results that is divided into tiles. No tile crosses such a line.
  uint64_t LineOf(const SpaceDims& kept) const {
    return mode_ == FoldMode::kColumns ? kept.back().size : results_;
  }

  void Fold(const std::byte* input, uint64_t result, uint64_t width, uint64_t begin, uint64_t end,
            std::byte* states, std::byte* packed) const {
    switch (mode_) {
      case FoldMode::kRows:
      case FoldMode::kPackedRows: {
        Walk kept(work_.kept, result);
        for (uint64_t i = 0; i < width; ++i, kept.Next()) {
          FoldRow(input + kept.offset(kInputTensor) * element_bytes_, begin, end, states, width, i,
                  packed);
        }
        break;
      }
      case FoldMode::kColumns:
        FoldColumns(input + Walk(work_.kept, result).offset(kInputTensor) * element_bytes_, begin,
                    end, states, width);
        break;
      case FoldMode::kPackedColumns:
        FoldPackedColumns(input, result, begin, end, states, width, packed);
        break;
    }
  }

  void FoldRow(const std::byte* input, uint64_t begin, uint64_t end, std::byte* states,
               uint64_t width, uint64_t at, std::byte* packed) const {
    if (mode_ == FoldMode::kRows) {
      const uint64_t run = work_.reduced.back().size;
      const uint64_t piece = kRowPieceBytes / element_bytes_;
      for (uint64_t position = begin; position < end;) {
        const uint64_t count = std::min({run - position % run, end - position, piece});
        const uint64_t offset = Walk(work_.reduced, position).offset(kInputTensor);
        kernels_.row(input + offset * element_bytes_, count, position, states, width, at);
        position += count;
      }
      return;
    }
    Walk reduced(work_.reduced, begin);
    for (uint64_t position = begin; position < end;) {
      const uint64_t count = std::min(kPackedRow, end - position);
      for (uint64_t i = 0; i < count; ++i, reduced.Next()) {
        CopyElement(packed + i * element_bytes_,
                    input + reduced.offset(kInputTensor) * element_bytes_, element_bytes_);
      }
      kernels_.row(packed, count, position, states, width, at);
      position += count;
    }
  }

  void FoldColumns(const std::byte* input, uint64_t begin, uint64_t end, std::byte* states,
                   uint64_t width) const {
    const void* rows[kRowBatch];
    Walk reduced(work_.reduced, begin);
    for (uint64_t position = begin; position < end;) {
      const uint64_t count = std::min(kRowBatch, end - position);
      for (uint64_t i = 0; i < count; ++i, reduced.Next()) {
        rows[i] = input + reduced.offset(kInputTensor) * element_bytes_;
      }
      kernels_.columns(rows, count, position, states, width);
      position += count;
    }
  }

  void FoldPackedColumns(const std::byte* input, uint64_t result, uint64_t begin, uint64_t end,
                         std::byte* states, uint64_t width, std::byte* packed) const {
    uint64_t results[kShortWidth];
    uint64_t offsets[kRowBatch];
    const void* rows[kRowBatch];
    InputOffsets(work_.kept, result, {results, width});
    for (uint64_t r = 0; r < kRowBatch; ++r) rows[r] = packed + r * tile_ * element_bytes_;
    for (uint64_t position = begin; position < end;) {
      const uint64_t count = std::min(kRowBatch, end - position);
      InputOffsets(work_.reduced, position, {offsets, count});
      Gather(input, packed, {results, width}, {offsets, count}, tile_, element_bytes_);
      kernels_.columns(rows, count, position, states, width);
      position += count;
    }
  }

  const FoldWork work_;
  const FoldKernels kernels_;
  const std::unique_ptr<FoldOutput> output_;
  const uint32_t element_bytes_;
  const uint64_t results_;
  const uint64_t count_;  // elements of one reduction
  FoldMode mode_ = FoldMode::kRows;
  uint64_t tile_ = 1;
  uint64_t tiles_per_line_ = 1;
  uint64_t tiles_ = 1;
  uint64_t tiles_per_task_ = 1;
  uint64_t split_ = 1;  // elements of a reduction in one unit
  uint64_t splits_ = 1;
  uint64_t partial_bytes_ = 0;
  std::optional<FoldLayout> layout_;
};

}  // namespace

std::unique_ptr<CpuProgram> MakeFoldProgram(FoldWork work, std::unique_ptr<FoldOutput> output) {
  return std::make_unique<FoldProgram>(std::move(work), std::move(output));
}

}  // namespace opmill
