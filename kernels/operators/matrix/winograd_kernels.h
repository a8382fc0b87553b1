// The processor's kernels of 3x3 convolutions by tiles. A tile of 4 x 4 outputs reads 6 x 6 inputs:
// these become 36 numbers, which are multiplied with 36 numbers of the filter, and whose products
// become the outputs. That takes 36 multiplications instead of 144. It is Winograd's F(4x4, 3x3),
// with the points 0, infinity, and the positive and negative square roots of 1/2 and 2: their
// errors are a third of those of the usual points 1 and 2.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_WINOGRAD_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_WINOGRAD_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace opmill {

inline constexpr size_t kTileSide = 4;      // outputs
inline constexpr size_t kTileInputs = 6;    // along a side
inline constexpr size_t kTileNumbers = 36;  // of a tile, once it is transformed
inline constexpr size_t kTileReadAhead =
    128;  // floats behind what kernels are given that they read or write

// Tiles in rows, one row after the other.
struct TileRows {
  size_t rows = 0;
  size_t columns = 0;  // tiles of a row

  size_t count() const { return rows * columns; }
  size_t width() const { return columns * kTileSide; }  // outputs of a line
};

struct WinogradKernels {
  // Transforms the inputs of tiles: lines of `line_stride` floats, of which the first row of tiles
  // reads six and each other one four more. Number e of tile t becomes to[e * to_stride + t].
  // `memory` has room for MemoryOfTiles(tiles) floats. Returns the largest magnitude of the inputs,
  // NaN if one is.
  float (*transform_inputs)(const float* lines, size_t line_stride, const TileRows& tiles,
                            float* memory, float* to, size_t to_stride) = nullptr;
  // The outputs of tiles from such numbers, plus `addend`: `lines` lines of `width` floats, one
  // after the other.
  void (*transform_outputs)(const float* from, size_t from_stride, const TileRows& tiles,
                            float addend, size_t lines, size_t width, float* memory,
                            float* to) = nullptr;
};

inline size_t MemoryOfTiles(const TileRows& tiles) {
  return 2 * kTileInputs * (tiles.count() * kTileSide + kTileReadAhead);
}

// Of a filter, in row-major order.
std::array<double, kTileNumbers> TransformFilter(const std::array<double, 9>& filter);

// Of the best instruction set.
WinogradKernels FindWinogradKernels();

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_WINOGRAD_KERNELS_H_
