#include "kernels/cpu/fold_steps.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "kernels/base/rounding.h"
#include "kernels/cpu/move_kernels.h"
#include "kernels/cpu/strided_walk.h"

namespace opmill {
namespace {

constexpr uint64_t kMostLines = 1024;
// Rows of columns are folded eight at a time.
constexpr uint64_t kRowGroup = 8;
constexpr uint64_t kColumnStepBytes = uint64_t{256} << 10;
constexpr uint64_t kMostColumnStepBytes = uint64_t{2} << 20;

uint64_t LineStepsOf(const FoldLayout& layout) {
  if (layout.folds_columns) return 1;
  const uint64_t lines = kRowPieceBytes / (layout.count * layout.element_bytes);
  return std::clamp<uint64_t>(lines, 1, std::min(layout.lines, kMostLines));
}

uint64_t PositionStepsOf(const FoldLayout& layout) {
  if (!layout.folds_columns) return std::min(layout.count, kRowPieceBytes / layout.element_bytes);
  const uint64_t rows = kColumnStepBytes / (layout.width * layout.element_bytes);
  return std::min(std::max(rows / kRowGroup * kRowGroup, kRowGroup), layout.count);
}

// A line of several tiles, or a tile of several lines.
uint64_t TileOf(const FoldLayout& layout) {
  return layout.folds_columns ? layout.tile : LineStepsOf(layout);
}

uint64_t TileStateBytes(const FoldLayout& layout, const FoldKernels& kernels) {
  return RoundUp(PaddedWidth(TileOf(layout)) * kernels.state_bytes, kStateStep);
}

class FoldSteps : public CpuSteps {
 public:
  FoldSteps(const FoldLayout& layout, const FoldKernels& kernels, std::byte* memory,
            std::byte* output)
      : layout_(layout),
        kernels_(kernels),
        lines_per_step_(LineStepsOf(layout)),
        positions_per_step_(PositionStepsOf(layout)),
        tile_(TileOf(layout)),
        tiles_(CeilDiv(layout.width, tile_)),
        tile_state_bytes_(TileStateBytes(layout, kernels)),
        first_states_(memory),
        later_states_(memory + tiles_ * tile_state_bytes_),
        results_(later_states_ + tiles_ * tile_state_bytes_),
        output_(output) {}

  uint64_t bytes() const override {
    return Lines() * Positions() * layout_.width * layout_.element_bytes;
  }

  void Take(const std::byte* input) override {
    const uint64_t count = Positions();
    if (layout_.is_hardmax) AddZeros();
    // The states of later splits are merged into those of the first one.
    const bool is_first = position_ < layout_.split;
    const bool begins_split = position_ % layout_.split == 0;
    const uint64_t end = position_ + count;
    const bool ends_split = end == layout_.count || end % layout_.split == 0;
    for (uint64_t tile = 0; tile < tiles_; ++tile) {
      std::byte* const first = first_states_ + tile * tile_state_bytes_;
      std::byte* const states = is_first ? first : later_states_ + tile * tile_state_bytes_;
      const uint64_t width = Width(tile);
      if (begins_split) kernels_.init(states, width, position_);
      if (layout_.folds_columns) {
        FoldColumns(input + tile * tile_ * layout_.element_bytes, count, states, width);
      } else {
        for (uint64_t i = 0; i < width; ++i) {
          kernels_.row(input + i * count * layout_.element_bytes, count, position_, states, width,
                       i);
        }
      }
      if (ends_split && !is_first) kernels_.merge(first, states, width);
      if (end < layout_.count) continue;
      kernels_.finish(first, width, layout_.count, results_);
      Store(tile * tile_, width);
    }
    if (layout_.is_hardmax) FinishStreams();
    position_ = end;
    if (end < layout_.count) return;
    position_ = 0;
    line_ += Lines();
  }

 private:
  uint64_t Lines() const { return std::min(lines_per_step_, layout_.lines - line_); }
  uint64_t Positions() const {
    return std::min({positions_per_step_, layout_.split - position_ % layout_.split,
                     layout_.count - position_});
  }
  uint64_t Width(uint64_t tile) const {
    return layout_.folds_columns ? std::min(tile_, layout_.width - tile * tile_) : Lines();
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

  // For the elements of the step.
  void AddZeros() const {
    const uint64_t place = (line_ * layout_.count + position_) * layout_.width;
    StreamZeros(output_ + place * layout_.element_bytes, bytes());
  }

  // Stores the results from result `at` of the line on.
  void Store(uint64_t at, uint64_t width) const {
    const auto* const positions = reinterpret_cast<const uint32_t*>(results_);
    const uint64_t result = line_ * layout_.width + at;
    std::byte* const to = output_ + result * layout_.result_bytes;
    if (layout_.is_hardmax) {
      const uint32_t one = layout_.element_bytes == 4 ? 0x3F80'0000 : 0x3C00;
      for (uint64_t i = 0; i < width; ++i) {
        const uint64_t place = layout_.folds_columns
                                   ? (line_ * layout_.count + positions[i]) * layout_.width + at + i
                                   : (line_ + i) * layout_.count + positions[i];
        CopyElement(output_ + place * layout_.element_bytes,
                    reinterpret_cast<const std::byte*>(&one), layout_.element_bytes);
      }
    } else if (FindsPositions(layout_.function) && layout_.result_bytes == 8) {
      for (uint64_t i = 0; i < width; ++i) {
        const uint64_t position = positions[i];
        std::memcpy(to + i * 8, &position, 8);
      }
    } else {
      std::memcpy(to, results_, width * layout_.result_bytes);
    }
  }

  const FoldLayout& layout_;
  const FoldKernels& kernels_;
  const uint64_t lines_per_step_;
  const uint64_t positions_per_step_;
  const uint64_t tile_;
  const uint64_t tiles_;
  const uint64_t tile_state_bytes_;
  std::byte* const first_states_;
  std::byte* const later_states_;
  std::byte* const results_;
  std::byte* const output_;
  uint64_t line_ = 0;
  uint64_t position_ = 0;  // in the reductions of the line
};

}  // namespace

std::optional<FoldLayout> LayoutOf(const FoldWork& work, bool folds_columns, uint64_t tile,
                                   uint64_t split) {
  // The dimensions of a line are in `reduced` and, of columns, at the end of `kept`.
  const size_t inner = folds_columns ? 1 : 0;
  if (work.is_top_1 || work.reduced.size() != 1 || work.kept.size() > inner + 1) {
    return std::nullopt;
  }
  const uint64_t width = folds_columns ? work.kept.back().size : 1;
  const uint64_t count = work.reduced[0].size;
  const auto lies_at = [&work](const WorkDim& dim, uint64_t input, uint64_t output) {
    return dim.input == input && dim.output == (work.is_hardmax ? input : output);
  };
  const bool has_lines = work.kept.size() > inner;
  if (!lies_at(work.reduced[0], width, 0) || (folds_columns && !lies_at(work.kept.back(), 1, 1)) ||
      (has_lines && !lies_at(work.kept[0], width * count, width))) {
    return std::nullopt;
  }
  return FoldLayout{.function = work.function,
                    .element_bytes = BytesOf(work.element),
                    .result_bytes = work.result_bytes,
                    .is_hardmax = work.is_hardmax,
                    .folds_columns = folds_columns,
                    .lines = has_lines ? work.kept[0].size : 1,
                    .width = width,
                    .count = count,
                    .tile = tile,
                    .split = split};
}

uint64_t FoldStepBytes(const FoldLayout& layout) {
  const uint64_t bytes =
      LineStepsOf(layout) * PositionStepsOf(layout) * layout.width * layout.element_bytes;
  return bytes <= kMostColumnStepBytes ? bytes : 0;
}

uint64_t FoldStateBytes(const FoldLayout& layout, const FoldKernels& kernels) {
  return 2 * CeilDiv(layout.width, TileOf(layout)) * TileStateBytes(layout, kernels) +
         PaddedWidth(TileOf(layout)) * sizeof(uint64_t);
}

std::unique_ptr<CpuSteps> MakeFoldSteps(const FoldLayout& layout, const FoldKernels& kernels,
                                        std::byte* memory, std::byte* output) {
  return std::make_unique<FoldSteps>(layout, kernels, memory, output);
}

}  // namespace opmill
