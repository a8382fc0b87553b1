#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/operators/matrix/winograd.h"
#include "kernels/operators/matrix/winograd_kernels.h"

namespace opmill {
namespace {

constexpr uint64_t kTaps = 9;
constexpr uint64_t kTapsOfLine = 3;
constexpr uint64_t kMoreInputs = kTileInputs - kTileSide;  // of a line than outputs
// Of fewer, transforming takes longer than it saves.
constexpr uint64_t kLeastChannels = 16;
constexpr uint64_t kLeastTiles = 16;
constexpr uint64_t kMostTiles = 64;  // of a band
// Tiles of a band for all channels: their transformed inputs take 4.5 MiB of a task's memory.
constexpr uint64_t kMostInputs = uint64_t{1} << 15;
constexpr uint64_t kWantedTasks = 4;
// Of a task: about 5 ms. Tasks of other products are shorter, but each of these transforms its
// inputs.
constexpr uint64_t kMostMultiplications = uint64_t{1} << 28;
constexpr uint64_t kGroupPanels = 4;
// Numbers that become infinite, or not a number, while they are transformed, would do so for all
// outputs of a tile. If the magnitudes of inputs and filters and their product are below, none do.
constexpr float kLargest = 0x1p100f;

// NaN if one of them is.
float Larger(float a, float b) { return std::isnan(a) || a > b ? a : b; }

uint64_t ChannelsOf(const ProductWork& work) { return work.depth / kTaps; }
uint64_t BandsOf(const ProductWork& work, const ProductCut& cut) {  // in all batches
  return CountOf(work.batches) * ColumnPartsOf(work, cut);
}
uint64_t PaddedRows(const ProductCut& cut) { return cut.row_panels * cut.panel_rows; }

// Where A is. First the transformed filters, in groups of rows: a group has number e of all
// its filters in blocks of K, as the product takes them, for each e. Then the filters as they are,
// and the largest magnitude in each row.
class TiledFilter {
 public:
  TiledFilter(const ProductWork& work, const ProductCut& cut)
      : channels_(ChannelsOf(work)),
        group_rows_(cut.pack_rows),
        padded_rows_(PaddedRows(cut)),
        depth_(work.depth),
        rows_(work.rows) {}

  // Of the group that begins at a row.
  uint64_t GroupAt(uint64_t row, uint64_t e, uint64_t k0) const {
    const uint64_t rows = std::min(group_rows_, padded_rows_ - row);
    return kTileNumbers * channels_ * row + (e * channels_ + k0) * rows;
  }
  uint64_t PlainAt(uint64_t row) const {
    return kTileNumbers * channels_ * padded_rows_ + row * depth_;
  }
  uint64_t LargestAt(uint64_t row) const { return PlainAt(rows_) + row; }

 private:
  const uint64_t channels_;
  const uint64_t group_rows_;
  const uint64_t padded_rows_;
  const uint64_t depth_;
  const uint64_t rows_;
};

// The inputs of a band of tiles, which become rows of tiles for each number and channel.
class TileInputs {
 public:
  TileInputs(const ProductWork& work, const MatrixKernels& kernels, uint64_t lines)
      : channels_(ChannelsOf(work)),
        width_(work.image->axes[2].outputs),
        tiles_{.rows = CeilDiv(lines, kTileSide), .columns = CeilDiv(width_, kTileSide)},
        tile_stride_(RoundUp(tiles_.count(), kernels.lanes)),
        // Otherwise the numbers of a tile would share a few sets of the cache.
        number_stride_(channels_ * tile_stride_ + kernels.lanes) {}

  uint64_t width() const { return width_; }
  const TileRows& tiles() const { return tiles_; }
  uint64_t tile_stride() const { return tile_stride_; }      // from channel to channel
  uint64_t number_stride() const { return number_stride_; }  // from number to number
  uint64_t floats() const { return kTileNumbers * number_stride_; }

  uint64_t line_width() const { return tiles_.width() + kMoreInputs; }
  uint64_t lines() const { return tiles_.rows * kTileSide + kMoreInputs; }

 private:
  const uint64_t channels_;
  const uint64_t width_;  // outputs of a line
  const TileRows tiles_;
  const uint64_t tile_stride_;
  const uint64_t number_stride_;
};

// The lines of an output line, for all channels.
uint64_t PlainFloats(const ProductWork& work) {
  return work.depth / kTapsOfLine * (work.image->axes[2].outputs + kMoreInputs) + kTileReadAhead;
}

// In scratch: the inputs of each band, and the largest magnitude in each part of its channels.
uint64_t TransformedFloats(const TileInputs& whole_band, const ProductCut& cut) {
  return whole_band.floats() + cut.input_parts;
}

class TileTask {
 public:
  TileTask(const ProductPart& part, const ProductTask& task, const Elements& b)
      : kernels_(part.kernels()),
        work_(part.work()),
        cut_(part.cut()),
        task_(task),
        image_rows_(kernels_, *work_.image, b, 0, 0, 0),
        inputs_(work_, kernels_, task.lines) {}

  // Returns the largest magnitude.
  float Transform(uint64_t first, uint64_t end, float* to) {
    const uint64_t floats = inputs_.lines() * inputs_.line_width();
    float* const lines = Take(floats + kTileReadAhead);
    std::fill_n(lines + floats, kTileReadAhead, 0.0f);
    float* const memory = Take(MemoryOfTiles(inputs_.tiles()));
    float largest = 0;
    for (uint64_t c = first; c < end; ++c) {
      WriteLines(c, 0, inputs_.lines(), inputs_.line_width(), lines);
      largest = Larger(largest, kernels_.winograd.transform_inputs(
                                    lines, inputs_.line_width(), inputs_.tiles(), memory,
                                    to + c * inputs_.tile_stride(), inputs_.number_stride()));
    }
    return largest;
  }

  // `part_of_channels`: what TransformTiles does.
  void TransformPart(uint64_t part_of_channels, float* transformed) {
    const uint64_t channels = CeilDiv(ChannelsOf(work_), cut_.input_parts);
    const uint64_t first = std::min(part_of_channels * channels, ChannelsOf(work_));
    transformed[LargestInputsAt() + part_of_channels] =
        Transform(first, std::min(first + channels, ChannelsOf(work_)), transformed + InputsAt());
  }

  // `transformed` is null if the task transforms its inputs itself.
  void Multiply(const float* filter, const float* transformed, const ProductBlock& result) {
    float largest = 0;
    if (transformed == nullptr) {
      float* const own = Take(inputs_.floats());
      largest = Transform(0, ChannelsOf(work_), own);
      transformed = own;
    } else {
      const float* const of_parts = transformed + LargestInputsAt();
      for (uint64_t p = 0; p < cut_.input_parts; ++p) largest = Larger(largest, of_parts[p]);
      transformed += InputsAt();
    }
    const float largest_tap = LargestOf(filter);
    if (largest < kLargest && largest_tap < kLargest && largest * largest_tap < kLargest) {
      MultiplyTransformed(filter, transformed, result);
    } else {
      MultiplyPlain(filter, result);
    }
  }

 private:
  float* Take(uint64_t floats) {
    return reinterpret_cast<float*>(scope_.Take(floats * sizeof(float)));
  }
  TileInputs WholeBand() const { return {work_, kernels_, cut_.band_lines}; }
  // Where TransformTiles writes.
  uint64_t InputsAt() const {
    const uint64_t band = task_.z * cut_.bands + task_.line / cut_.band_lines;
    return (task_.batch.b_copy * ColumnPartsOf(work_, cut_) + band) *
           TransformedFloats(WholeBand(), cut_);
  }
  uint64_t LargestInputsAt() const { return InputsAt() + WholeBand().floats(); }

  // Lines of inputs, the first of which is the first that output line `line` of the task reads.
  void WriteLines(uint64_t channel, uint64_t line, uint64_t lines, uint64_t width,
                  float* to) const {
    const std::array<int64_t, 3>& tap = work_.image->taps[0];
    image_rows_.WriteLines(task_.batch.offsets[kProductB] + channel * work_.image->channel_stride,
                           static_cast<int64_t>(task_.z) + tap[0],
                           static_cast<int64_t>(task_.line + line) + tap[1], lines, tap[2], width,
                           to);
  }

  float LargestOf(const float* filter) const {
    float largest = 0;
    // Of all rows: how many a task has depends on the batch, of which the bits must not.
    for (uint64_t row = 0; row < work_.rows; ++row) {
      largest = Larger(largest, filter[filter_.LargestAt(row)]);
    }
    return largest;
  }

  static float AddendOf(const ProductBlock& result, uint64_t row) {
    const float* const addends = result.finish.row_addends;
    return addends == nullptr ? 0.0f : addends[row];
  }

  void MultiplyTransformed(const float* filter, const float* transformed,
                           const ProductBlock& result) {
    float* const memory = Take(MemoryOfTiles(inputs_.tiles()));
    const uint64_t number_stride = cut_.pack_rows * inputs_.tile_stride() + kernels_.lanes;
    float* const products = Take(kTileNumbers * number_stride);
    for (uint64_t row = 0; row < task_.rows; row += cut_.pack_rows) {
      const uint64_t rows = std::min(cut_.pack_rows, task_.rows - row);
      MultiplyGroup(filter, row, rows, transformed, products, number_stride);
      for (uint64_t r = 0; r < rows; ++r) {
        kernels_.winograd.transform_outputs(products + r * inputs_.tile_stride(), number_stride,
                                            inputs_.tiles(), AddendOf(result, row + r), task_.lines,
                                            inputs_.width(), memory,
                                            result.result + (row + r) * result.result_stride);
      }
    }
  }

  void MultiplyGroup(const float* filter, uint64_t row, uint64_t rows, const float* transformed,
                     float* products, uint64_t number_stride) const {
    const uint64_t channels = ChannelsOf(work_);
    ProductBlock block = {.rows = rows,
                          .columns = inputs_.tile_stride(),
                          .panel_rows = cut_.panel_rows,
                          .b_stride = inputs_.tile_stride(),
                          .b_panel = kernels_.panel_columns,
                          .result_stride = inputs_.tile_stride()};
    for (uint64_t e = 0; e < kTileNumbers; ++e) {
      block.result = products + e * number_stride;
      for (uint64_t k0 = 0; k0 < channels; k0 += cut_.block_depth) {
        block.depth = std::min(cut_.block_depth, channels - k0);
        block.a = filter + filter_.GroupAt(task_.row + row, e, k0);
        block.b = transformed + e * inputs_.number_stride() + k0 * inputs_.tile_stride();
        block.is_first = k0 == 0;
        kernels_.multiply(block);
      }
    }
  }

  // Without transforming anything, line by line.
  void MultiplyPlain(const float* filter, const ProductBlock& result) {
    const uint64_t width = inputs_.width() + kMoreInputs;
    float* const lines = Take(PlainFloats(work_));
    std::vector<uint32_t> offsets(work_.depth);
    for (uint64_t k = 0; k < work_.depth; ++k) {
      offsets[k] = static_cast<uint32_t>(k / kTapsOfLine * width + k % kTapsOfLine);
    }
    ProductBlock block = result;
    block.columns = inputs_.width();
    block.a_stride = work_.depth;
    block.b = lines;
    block.b_panel = kernels_.panel_columns;
    for (uint64_t line = 0; line < task_.lines; ++line) {
      for (uint64_t c = 0; c < ChannelsOf(work_); ++c) {
        WriteLines(c, line, kTapsOfLine, width, lines + c * kTapsOfLine * width);
      }
      for (uint64_t k0 = 0; k0 < work_.depth; k0 += kBlockDepth) {
        block.depth = std::min(kBlockDepth, work_.depth - k0);
        block.a = filter + filter_.PlainAt(task_.row) + k0;
        block.b_offsets = offsets.data() + k0;
        block.is_first = k0 == 0;
        block.is_last = k0 + block.depth == work_.depth;
        kernels_.multiply(block);
      }
      block.result += inputs_.width();
    }
  }

  const MatrixKernels& kernels_;
  const ProductWork& work_;
  const ProductCut& cut_;
  const ProductTask& task_;
  const ImageRows image_rows_;
  const TileInputs inputs_;
  const TiledFilter filter_{work_, cut_};
  TaskMemory::Scope scope_;
};

}  // namespace

bool CanTile(const ProductWork& work, const ProductCut& cut) {
  if (!work.image.has_value() || work.image->taps.size() != kTaps || work.alpha != 1) return false;
  if (work.addend.has_value() && work.addend->column_stride != 0) return false;
  const ProductImage& image = *work.image;
  for (const ImageAxis& axis : image.axes) {
    if (axis.step != 1 || axis.spread != 1) return false;
  }
  const auto& [z, y, x] = image.taps[0];
  for (size_t t = 0; t < kTaps; ++t) {
    const auto [down, right] = std::pair<int64_t, int64_t>(t / 3, t % 3);
    if (image.taps[t] != std::array<int64_t, 3>{z, y + down, x + right}) return false;
  }
  const uint64_t columns = CeilDiv(image.axes[2].outputs, kTileSide);
  return work.rows >= kLeastChannels && ChannelsOf(work) >= kLeastChannels &&
         ChannelsOf(work) * columns <= kMostInputs &&
         CeilDiv(image.axes[1].outputs, kTileSide) * columns >= kLeastTiles &&
         TiledFloats(work, cut) * CopiesOf(work, kProductA) * sizeof(float) <= kMostPackedBytes;
}

void CutTiles(const ProductWork& work, const MatrixKernels& kernels, ProductCut& cut) {
  cut.block_depth = EvenPart(ChannelsOf(work), kBlockDepth);
  const auto& axes = work.image->axes;
  const uint64_t rows = CeilDiv(axes[1].outputs, kTileSide);
  const uint64_t columns = CeilDiv(axes[2].outputs, kTileSide);
  const uint64_t most_tiles = std::min(kMostTiles, kMostInputs / ChannelsOf(work));
  const uint64_t most = EvenPart(rows, std::max<uint64_t>(most_tiles / columns, 1));
  // Of the heights that take not many more bands the one whose bands fill vectors best.
  uint64_t least_vectors = std::numeric_limits<uint64_t>::max();
  for (uint64_t height = most; height > most / 2; --height) {
    const auto vectors_of = [&](uint64_t tile_rows) {
      return CeilDiv(tile_rows * columns, kernels.lanes);
    };
    const uint64_t vectors = rows / height * vectors_of(height) + vectors_of(rows % height);
    if (vectors >= least_vectors) continue;
    least_vectors = vectors;
    cut.band_lines = height * kTileSide;
  }
  cut.bands = CeilDiv(axes[1].outputs, cut.band_lines);
  cut.columns = cut.band_lines * axes[2].outputs;
  // Groups that do not depend on the image, so that images of all sizes share the filters; as many
  // as tasks can have in equal numbers.
  const uint64_t group_panels =
      CeilDiv(cut.row_panels, RoundUp(CeilDiv(cut.row_panels, kGroupPanels), kWantedTasks));
  cut.pack_rows = group_panels * cut.panel_rows;
  const uint64_t groups = CeilDiv(work.rows, cut.pack_rows);
  const TileInputs inputs(work, kernels, cut.band_lines);
  const uint64_t multiplications =
      kTileNumbers * inputs.tiles().count() * ChannelsOf(work) * work.rows;
  const uint64_t parts = std::max(CeilDiv(kWantedTasks, BandsOf(work, cut)),
                                  CeilDiv(multiplications, kMostMultiplications));
  cut.rows = std::min(work.rows, CeilDiv(groups, parts) * cut.pack_rows);
}

void TransformFirst(const ProductWork& work, const MatrixKernels& kernels, ProductCut& cut,
                    ProductScratch& scratch) {
  if (cut.rows == work.rows || BandsOf(work, cut) >= kWantedTasks) return;
  cut.input_parts = kWantedTasks;
  const uint64_t bands = CopiesOf(work, kProductB) * ColumnPartsOf(work, cut);
  cut.transforms = bands * cut.input_parts;
  cut.input_scratch = scratch.inputs;
  scratch.inputs += bands * TransformedFloats({work, kernels, cut.band_lines}, cut);
}

uint64_t TileTaskFloats(const ProductWork& work, const MatrixKernels& kernels,
                        const ProductCut& cut) {
  const TileInputs inputs(work, kernels, cut.band_lines);
  const uint64_t products = kTileNumbers * (cut.pack_rows * inputs.tile_stride() + kernels.lanes);
  const uint64_t lines = inputs.lines() * inputs.line_width() + kTileReadAhead;
  const uint64_t transforming =
      cut.input_parts > 0 ? 0 : inputs.floats() + lines + MemoryOfTiles(inputs.tiles());
  const uint64_t results = WritesInPlace(work) ? 0 : (cut.rows + 1) * cut.columns;
  return transforming + results +
         std::max(MemoryOfTiles(inputs.tiles()) + products, PlainFloats(work));
}

uint64_t TiledFloats(const ProductWork& work, const ProductCut& cut) {
  return TiledFilter(work, cut).LargestAt(work.rows);
}

void WriteTiled(const ProductPart& part, const ProductTask& task, const Elements& a, float* to) {
  const ProductWork& work = part.work();
  const ProductCut& cut = part.cut();
  const TiledFilter filter(work, cut);
  for (uint64_t row = task.row; row < task.row + task.rows; ++row) {
    const uint64_t from = task.batch.offsets[kProductA] + row * work.a.stride;
    float* const plain = to + filter.PlainAt(row);
    float largest = 0;
    for (uint64_t k = 0; k < work.depth; ++k) {
      plain[k] = a.At(from + DepthOffset(work.a, k));
      largest = Larger(largest, std::abs(plain[k]));
    }
    to[filter.LargestAt(row)] = largest;
  }
  const uint64_t width = cut.panel_rows;
  for (uint64_t row = task.row; row < task.row + task.rows; row += width) {
    const uint64_t group = row / cut.pack_rows * cut.pack_rows;
    for (uint64_t k = 0; k < ChannelsOf(work); ++k) {
      const uint64_t k0 = k / cut.block_depth * cut.block_depth;
      const uint64_t depth = std::min(cut.block_depth, ChannelsOf(work) - k0);
      const uint64_t in_block = (row - group) * depth + (k - k0) * width;
      for (uint64_t r = 0; r < width; ++r) {
        std::array<double, kTaps> taps = {};
        if (row + r < work.rows) {
          std::copy_n(to + filter.PlainAt(row + r) + k * kTaps, kTaps, taps.begin());
        }
        const std::array<double, kTileNumbers> numbers = TransformFilter(taps);
        for (uint64_t e = 0; e < kTileNumbers; ++e) {
          to[filter.GroupAt(group, e, k0) + in_block + r] = static_cast<float>(numbers[e]);
        }
      }
    }
  }
}

void TransformTiles(const ProductPart& part, const ProductTask& task, uint64_t input_part,
                    const Elements& b, float* transformed) {
  TileTask(part, task, b).TransformPart(input_part, transformed);
}

void MultiplyTiles(const ProductPart& part, const ProductTask& task, const RunBuffers& buffers,
                   const ProductBlock& result) {
  const Elements b = part.InputOf(part.work().b.input, buffers);
  const bool is_transformed = part.cut().input_parts > 0;
  TileTask(part, task, b)
      .Multiply(part.PackedA(task, buffers), is_transformed ? part.Transformed(buffers) : nullptr,
                result);
}

}  // namespace opmill
