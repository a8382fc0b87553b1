#include <algorithm>

#include "kernels/base/rounding.h"
#include "kernels/operators/reduction/fold_steps.h"

namespace opmill {
namespace {

constexpr uint64_t kMostLines = 1024;
// Of columns. It stays in the L2 cache, and has so many rows that the states are seldom loaded.
constexpr uint64_t kColumnStepBytes = uint64_t{256} << 10;

uint64_t LineBytes(const FoldLayout& layout) {
  return layout.count * layout.width * layout.element_bytes;
}

// A step takes whole lines, or a part of one. Merged states belong to a single line.
uint64_t LinesPerStep(const FoldLayout& layout) {
  if (layout.split < layout.count) return 1;
  return std::clamp<uint64_t>(kRowPieceBytes / LineBytes(layout), 1,
                              std::min(layout.lines, kMostLines));
}

uint64_t PositionsPerStep(const FoldLayout& layout) {
  if (LineBytes(layout) <= kRowPieceBytes) return layout.count;
  if (!layout.folds_columns) return kRowPieceBytes / layout.element_bytes;
  const uint64_t bytes = std::min(kColumnStepBytes, layout.lines * LineBytes(layout) / 4);
  const uint64_t rows = bytes / (layout.width * layout.element_bytes);
  return std::min(std::max(rows / kRowGroup * kRowGroup, kRowGroup), layout.count);
}

// The results whose states are side by side: a part of a line of columns, or the rows of a step.
uint64_t TileOf(const FoldLayout& layout) {
  return layout.folds_columns ? layout.tile : LinesPerStep(layout);
}

// Of all tiles of a line.
uint64_t StateBytes(const FoldLayout& layout, const FoldKernels& kernels) {
  return CeilDiv(layout.width, TileOf(layout)) * PaddedWidth(TileOf(layout)) * kernels.state_bytes;
}

class FoldSteps : public CpuSteps {
 public:
  FoldSteps(const FoldLayout& layout, const FoldKernels& kernels, const FoldOutput& output,
            const RunBuffers& buffers)
      : layout_(layout),
        kernels_(kernels),
        output_(output),
        buffers_(buffers),
        lines_per_step_(LinesPerStep(layout)),
        positions_per_step_(PositionsPerStep(layout)),
        tile_(TileOf(layout)),
        results_(buffers.scratch),
        first_states_(buffers.scratch + PaddedWidth(tile_) * sizeof(uint64_t)),
        later_states_(first_states_ + StateBytes(layout, kernels)) {}

  uint64_t bytes() const override {
    return Lines() * Positions() * layout_.width * layout_.element_bytes;
  }

  void Take(const std::byte* input) override {
    const uint64_t lines = Lines();
    const uint64_t end = position_ + Positions();
    output_.ClearStep((line_ * layout_.count + position_) * layout_.width,
                      bytes() / layout_.element_bytes, buffers_);
    if (layout_.folds_columns) {
      for (uint64_t i = 0; i < lines; ++i) {
        FoldLine(input + i * LineBytes(layout_), line_ + i, end);
      }
    } else {
      FoldTile(input, line_, 0, lines, end);
    }
    output_.FinishTask();
    position_ = end;
    if (end < layout_.count) return;
    position_ = 0;
    line_ += lines;
  }

 private:
  uint64_t Lines() const { return std::min(lines_per_step_, layout_.lines - line_); }
  uint64_t Positions() const {
    return std::min({positions_per_step_, layout_.split - position_ % layout_.split,
                     layout_.count - position_});
  }

  void FoldLine(const std::byte* input, uint64_t line, uint64_t end) const {
    for (uint64_t at = 0; at < layout_.width; at += tile_) {
      FoldTile(input + at * layout_.element_bytes, line, at, std::min(tile_, layout_.width - at),
               end);
    }
  }

  // Folds positions up to `end` into `width` results, from result `at` of the line on.
  void FoldTile(const std::byte* input, uint64_t line, uint64_t at, uint64_t width,
                uint64_t end) const {
    const uint64_t offset = at / tile_ * PaddedWidth(tile_) * kernels_.state_bytes;
    std::byte* const first = first_states_ + offset;
    // The states of later splits are merged into those of the first one.
    const bool is_first = position_ < layout_.split;
    std::byte* const states = is_first ? first : later_states_ + offset;
    if (position_ % layout_.split == 0) kernels_.init(states, width, position_);
    if (layout_.folds_columns) {
      FoldColumns(input, end - position_, states, width);
    } else {
      const uint64_t row_bytes = (end - position_) * layout_.element_bytes;
      for (uint64_t i = 0; i < width; ++i) {
        kernels_.row(input + i * row_bytes, end - position_, position_, states, width, i);
      }
    }
    const bool is_complete = end == layout_.count;
    if (!is_first && (is_complete || end % layout_.split == 0)) {
      kernels_.merge(first, states, width);
    }
    if (!is_complete) return;
    kernels_.finish(first, width, layout_.count, results_);
    output_.StoreStep(results_, line * layout_.width + at, width, buffers_);
  }

  void FoldColumns(const std::byte* input, uint64_t count, std::byte* states,
                   uint64_t width) const {
    const void* rows[kRowGroup];
    for (uint64_t row = 0; row < count; row += kRowGroup) {
      const uint64_t some = std::min(kRowGroup, count - row);
      for (uint64_t i = 0; i < some; ++i) {
        rows[i] = input + (row + i) * layout_.width * layout_.element_bytes;
      }
      kernels_.columns(rows, some, position_ + row, states, width);
    }
  }

  const FoldLayout& layout_;
  const FoldKernels& kernels_;
  const FoldOutput& output_;
  const RunBuffers buffers_;
  const uint64_t lines_per_step_;
  const uint64_t positions_per_step_;
  const uint64_t tile_;
  std::byte* const results_;
  std::byte* const first_states_;
  std::byte* const later_states_;  // if there are several splits
  uint64_t line_ = 0;
  uint64_t position_ = 0;  // in the reductions of the line
};

}  // namespace

std::optional<FoldLayout> LayoutOf(const FoldWork& work, FoldOutput::Holds holds,
                                   bool folds_columns, uint64_t tile, uint64_t split) {
  // The dimensions of a line are in `reduced` and, of columns, at the end of `kept`.
  const size_t inner = folds_columns ? 1 : 0;
  if (holds == FoldOutput::Holds::kOther || work.reduced.size() != 1 ||
      work.kept.size() > inner + 1) {
    return std::nullopt;
  }
  const uint64_t width = folds_columns ? work.kept.back().size : 1;
  const uint64_t count = work.reduced[0].size;
  const auto lies_at = [holds](const SpaceDim& dim, uint64_t input, uint64_t output) {
    return dim.strides[kInputTensor] == input &&
           dim.strides[kOutputTensor] == (holds == FoldOutput::Holds::kElements ? input : output);
  };
  const bool has_lines = work.kept.size() > inner;
  if (!lies_at(work.reduced[0], width, 0) || (folds_columns && !lies_at(work.kept.back(), 1, 1)) ||
      (has_lines && !lies_at(work.kept[0], width * count, width))) {
    return std::nullopt;
  }
  return FoldLayout{.element_bytes = ElementBytes(work.type),
                    .folds_columns = folds_columns,
                    .lines = has_lines ? work.kept[0].size : 1,
                    .width = width,
                    .count = count,
                    .tile = tile,
                    .split = split};
}

uint64_t FoldStepBytes(const FoldLayout& layout) {
  return LinesPerStep(layout) * PositionsPerStep(layout) * layout.width * layout.element_bytes;
}

uint64_t FoldStateBytes(const FoldLayout& layout, const FoldKernels& kernels) {
  const uint64_t splits = layout.split < layout.count ? 2 : 1;
  return PaddedWidth(TileOf(layout)) * sizeof(uint64_t) + splits * StateBytes(layout, kernels);
}

std::unique_ptr<CpuSteps> MakeFoldSteps(const FoldLayout& layout, const FoldKernels& kernels,
                                        const FoldOutput& output, const RunBuffers& buffers) {
  return std::make_unique<FoldSteps>(layout, kernels, output, buffers);
}

}  // namespace opmill
