#include "kernels/cpu/fold_program.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cpu/fold_kernels.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/cpu/walk.h"

namespace opmill {
namespace {

constexpr uint64_t kLeastTaskElements = uint64_t{1} << 16;
constexpr uint64_t kMostTaskElements = uint64_t{1} << 20;
constexpr uint64_t kTasks = 64;     // enough for many processors, few enough for their partials
constexpr uint64_t kRowBatch = 64;  // rows that `columns` is given at a time
constexpr uint64_t kStateBytes = 32768;  // of a tile of columns: they stay in the first cache
constexpr uint64_t kPackedWidth = 128;
constexpr uint64_t kShortWidth = 1024;  // instead, where there are few rows
constexpr uint64_t kShortRows = 8;
constexpr uint64_t kPackedRow = 4096;
constexpr uint64_t kShortRow = 64;  // rows below it are folded side by side, as columns

FoldKernels KernelsFor(const FoldWork& work) {
  switch (work.function) {
    case CpuFunction::kArgMin:
    case CpuFunction::kArgMax:
      return ArgKernels(work.function, work.element, work.last_wins);
    case CpuFunction::kMin:
    case CpuFunction::kMax:
      return ExtremeKernels(work.function, work.element);
    case CpuFunction::kLogSumExp:
      return LogSumExpKernels(work.element);
    default:
      return SumKernels(work.function, work.element);
  }
}

bool FindsPositions(CpuFunction function) {
  return function == CpuFunction::kArgMin || function == CpuFunction::kArgMax;
}

// Results are in tiles, side by side along the last kept dimension where columns are folded in
// place; reductions are split. A unit is one split of one tile, a task some units of one split.
class FoldProgram : public CpuProgram {
 public:
  explicit FoldProgram(FoldWork work) : work_(std::move(work)), kernels_(KernelsFor(work_)) {
    element_bytes_ = BytesOf(work_.element);
    SortAndMerge(work_.kept);
    for (WorkDim& dim : work_.reduced) {
      if (!work_.is_hardmax) dim.output = dim.indices = 0;
    }
    if (!FindsPositions(work_.function))
      std::stable_sort(work_.reduced.begin(), work_.reduced.end(), IsOuter);
    MergeDims(work_.reduced);
    results_ = CountOf(work_.kept);
    count_ = CountOf(work_.reduced);
    ChooseMode();
    const uint64_t elements = results_ * count_;
    const uint64_t task = std::clamp(elements / kTasks, kLeastTaskElements, kMostTaskElements);
    // A tile of rows is as many as one task takes; columns have their width.
    if (mode_ == Mode::kRows || mode_ == Mode::kPackedRows) {
      tile_ = std::clamp<uint64_t>(task / count_, 1, std::min<uint64_t>(results_, 1024));
    }
    tile_ = std::min(tile_, LineOf(work_.kept));
    tiles_per_line_ = CeilDiv(LineOf(work_.kept), tile_);
    tiles_ = results_ / LineOf(work_.kept) * tiles_per_line_;
    split_ = std::clamp<uint64_t>(task / tile_, std::min(count_, kRowBatch), count_);
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
    const uint64_t weight = work_.function == CpuFunction::kLogSumExp ? 4 : 1;
    cost_bytes_ = (elements * element_bytes_ + results_ * 16) * weight;
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
        kernels_.init(partial(split), width, begin);
        Fold(buffers.inputs[0], result, width, begin, std::min(begin + split_, count_),
             partial(split), packed);
        if (splits_ > 1) continue;
      } else {
        for (uint64_t s = 1; s < splits_; ++s) kernels_.merge(partial(0), partial(s), width);
      }
      kernels_.finish(partial(0), width, count_, results);
      Store(results, result, width, buffers.outputs[0]);
    }
  }

 private:
  // Rows and columns are read in place where their elements are side by side; what is not is
  // gathered first, into rows where there are few results, and else into columns.
  enum class Mode { kRows, kColumns, kPackedRows, kPackedColumns };

  void ChooseMode() {
    const bool rows = !work_.reduced.empty() && work_.reduced.back().input == 1;
    const bool columns = !work_.kept.empty() && work_.kept.back().input == 1;
    const uint64_t run = rows ? work_.reduced.back().size : 0;
    if (rows && (run >= kShortRow || results_ < 16)) {
      mode_ = Mode::kRows;
    } else if (columns && work_.kept.back().size >= 16) {
      mode_ = Mode::kColumns;
      tile_ = std::min<uint64_t>(kMaxColumnBytes / element_bytes_,
                                 kStateBytes / kernels_.state_bytes / kStateStep * kStateStep);
    } else if (results_ < 16) {
      mode_ = Mode::kPackedRows;
    } else {
      mode_ = Mode::kPackedColumns;
      tile_ = count_ <= kShortRows ? kShortWidth : kPackedWidth;
    }
  }

  // The results that tiles do not cross.
  uint64_t LineOf(const std::vector<WorkDim>& kept) const {
    return mode_ == Mode::kColumns ? kept.back().size : results_;
  }

  void Fold(const std::byte* input, uint64_t result, uint64_t width, uint64_t begin, uint64_t end,
            std::byte* states, std::byte* packed) const {
    switch (mode_) {
      case Mode::kRows:
      case Mode::kPackedRows: {
        Walk kept(work_.kept, result);
        for (uint64_t i = 0; i < width; ++i, kept.Next()) {
          FoldRow(input + kept.input() * element_bytes_, begin, end, states, width, i, packed);
        }
        break;
      }
      case Mode::kColumns:
        FoldColumns(input + Walk(work_.kept, result).input() * element_bytes_, begin, end, states,
                    width);
        break;
      case Mode::kPackedColumns:
        FoldPackedColumns(input, result, begin, end, states, width, packed);
        break;
    }
  }

  void FoldRow(const std::byte* input, uint64_t begin, uint64_t end, std::byte* states,
               uint64_t width, uint64_t at, std::byte* packed) const {
    if (mode_ == Mode::kRows) {
      const uint64_t run = work_.reduced.back().size;
      for (uint64_t position = begin; position < end;) {
        const uint64_t count = std::min(run - position % run, end - position);
        const uint64_t offset = Walk(work_.reduced, position).input();
        kernels_.row(input + offset * element_bytes_, count, position, states, width, at);
        position += count;
      }
      return;
    }
    Walk reduced(work_.reduced, begin);
    for (uint64_t position = begin; position < end;) {
      const uint64_t count = std::min(kPackedRow, end - position);
      for (uint64_t i = 0; i < count; ++i, reduced.Next()) {
        CopyElement(packed + i * element_bytes_, input + reduced.input() * element_bytes_,
                    element_bytes_);
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
        rows[i] = input + reduced.input() * element_bytes_;
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
    Walk kept(work_.kept, result);
    for (uint64_t i = 0; i < width; ++i, kept.Next()) results[i] = kept.input();
    for (uint64_t r = 0; r < kRowBatch; ++r) rows[r] = packed + r * tile_ * element_bytes_;
    Walk reduced(work_.reduced, begin);
    for (uint64_t position = begin; position < end;) {
      const uint64_t count = std::min(kRowBatch, end - position);
      for (uint64_t r = 0; r < count; ++r, reduced.Next()) offsets[r] = reduced.input();
      Gather(input, packed, {results, width}, {offsets, count}, tile_, element_bytes_);
      kernels_.columns(rows, count, position, states, width);
      position += count;
    }
  }

  bool AreSideBySide(uint64_t result, uint64_t width) const {
    if (work_.kept.empty()) return true;
    const WorkDim& last = work_.kept.back();
    return last.output == 1 && result % last.size + width <= last.size;
  }

  void Store(const std::byte* results, uint64_t result, uint64_t width, std::byte* output) const {
    Walk kept(work_.kept, result);
    const uint32_t finished_bytes = FindsPositions(work_.function) ? 4 : element_bytes_;
    if (!work_.is_hardmax && work_.result_bytes == finished_bytes && AreSideBySide(result, width)) {
      std::memcpy(output + kept.output() * finished_bytes, results, width * finished_bytes);
      return;
    }
    for (uint64_t i = 0; i < width; ++i, kept.Next()) {
      if (work_.is_hardmax) {
        uint32_t position = 0;
        std::memcpy(&position, results + i * 4, 4);
        const uint64_t place = kept.output() + Walk(work_.reduced, position).output();
        const uint32_t one = work_.element == CpuElement::kF32 ? 0x3F80'0000 : 0x3C00;
        std::memcpy(output + place * element_bytes_, &one, element_bytes_);
      } else if (FindsPositions(work_.function)) {
        uint64_t position = 0;
        std::memcpy(&position, results + i * 4, 4);
        std::memcpy(output + kept.output() * work_.result_bytes, &position, work_.result_bytes);
      } else {
        CopyElement(output + kept.output() * element_bytes_, results + i * element_bytes_,
                    element_bytes_);
      }
    }
  }

  FoldWork work_;
  const FoldKernels kernels_;
  uint32_t element_bytes_ = 0;
  Mode mode_ = Mode::kRows;
  uint64_t results_ = 1;
  uint64_t count_ = 1;  // elements of one reduction
  uint64_t tile_ = 1;
  uint64_t tiles_per_line_ = 1;
  uint64_t tiles_ = 1;
  uint64_t tiles_per_task_ = 1;
  uint64_t split_ = 1;  // elements of a reduction in one unit
  uint64_t splits_ = 1;
  uint64_t partial_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const CpuProgram> MakeFoldProgram(FoldWork work) {
  return std::make_unique<FoldProgram>(std::move(work));
}

}  // namespace opmill
