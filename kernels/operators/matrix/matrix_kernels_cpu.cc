#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/operators/matrix/matrix_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/matrix/matrix_kernels_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> df;
using V = hn::Vec<decltype(df)>;

// Sums of a tile stay in registers: 24 of the 32 of AVX-512, 12 of the 16 of others.
constexpr size_t kPanelRows = hn::MaxLanes(df) == 16 ? 12 : 6;
constexpr size_t kPanelVectors = 2;

// A tile of `kRows` rows and `kVectors` vectors of columns. The loops over them are unrolled.
template <size_t kRows, size_t kVectors, bool kIsPacked, bool kHasOffsets>
HWY_INLINE void MultiplyTile(const ProductBlock& block, const float* HWY_RESTRICT a,
                             const float* HWY_RESTRICT b, size_t first_row, size_t first_column,
                             float* result, size_t result_stride) {
  const size_t n = hn::Lanes(df);
  const size_t a_stride = block.a_stride;
  const size_t panel_rows = block.panel_rows;
  const size_t b_stride = block.b_stride;
  V sums[kRows][kVectors];
  HWY_UNROLL(12)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(df);
  }
  // Three rows share a pointer, so that the pointers fit into the registers.
  const float* HWY_RESTRICT thirds[(kRows + 2) / 3];
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; r += 3) thirds[r / 3] = a + (kIsPacked ? r : r * a_stride);
  for (size_t k = 0; k < block.depth; ++k) {
    V columns[kVectors];
    HWY_UNROLL(2)
    for (size_t v = 0; v < kVectors; ++v) {
      columns[v] = hn::LoadU(df, (kHasOffsets ? b + block.b_offsets[k] : b) + v * n);
    }
    if (!kHasOffsets) b += b_stride;
    HWY_UNROLL(12)
    for (size_t r = 0; r < kRows; ++r) {
      const V row = kIsPacked ? hn::Set(df, a[r]) : hn::Set(df, thirds[r / 3][r % 3 * a_stride]);
      HWY_UNROLL(2)
      for (size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(row, columns[v], sums[r][v]);
      }
    }
    a += panel_rows;
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; r += 3) ++thirds[r / 3];
  }
  const ProductFinish& finish = block.finish;
  const V alpha = hn::Set(df, finish.alpha);
  const V beta = hn::Set(df, finish.beta);
  HWY_UNROLL(12)
  for (size_t r = 0; r < kRows; ++r) {
    float* const to = result + r * result_stride;
    HWY_UNROLL(2)
    for (size_t v = 0; v < kVectors; ++v) {
      V sum = sums[r][v];
      if (!block.is_first) sum = hn::Add(hn::LoadU(df, to + v * n), sum);
      if (block.is_last) {
        sum = hn::Mul(sum, alpha);
        if (finish.row_addends != nullptr) {
          sum = hn::Add(sum, hn::Set(df, finish.row_addends[first_row + r]));
        }
        if (finish.addend != nullptr) {
          const float* const addend =
              finish.addend + (first_row + r) * finish.addend_stride + first_column;
          sum = hn::MulAdd(beta, hn::LoadU(df, addend + v * n), sum);
        }
      }
      hn::StoreU(sum, df, to + v * n);
    }
  }
}

using TileFunction = void (*)(const ProductBlock&, const float*, const float*, size_t, size_t,
                              float*, size_t);

template <size_t kRows, size_t kVectors, bool kIsPacked, bool kHasOffsets>
void Tile(const ProductBlock& block, const float* a, const float* b, size_t first_row,
          size_t first_column, float* result, size_t result_stride) {
  MultiplyTile<kRows, kVectors, kIsPacked, kHasOffsets>(block, a, b, first_row, first_column,
                                                        result, result_stride);
}

struct TileTable {
  TileFunction at[kPanelRows + 1][kPanelVectors + 1];
};

template <bool kIsPacked, bool kHasOffsets, size_t... kRows>
constexpr TileTable MakeTiles(std::index_sequence<kRows...>) {
  TileTable table = {};
  ((table.at[kRows + 1][1] = &Tile<kRows + 1, 1, kIsPacked, kHasOffsets>,
    table.at[kRows + 1][2] = &Tile<kRows + 1, 2, kIsPacked, kHasOffsets>),
   ...);
  return table;
}
template <bool kIsPacked, bool kHasOffsets>
constexpr TileTable kTiles =
    MakeTiles<kIsPacked, kHasOffsets>(std::make_index_sequence<kPanelRows>());

TileFunction TileOf(const ProductBlock& block, size_t rows, size_t vectors) {
  const bool is_packed = block.a_stride == 0;
  const TileTable& tiles = block.b_offsets == nullptr
                               ? (is_packed ? kTiles<true, false> : kTiles<false, false>)
                               : (is_packed ? kTiles<true, true> : kTiles<false, true>);
  return tiles.at[rows][vectors];
}

// The last columns, which fill less than the vectors: through memory of whole vectors.
HWY_NOINLINE void MultiplyLastColumns(const ProductBlock& block, const float* a, const float* b,
                                      size_t first_row, size_t rows, size_t first_column) {
  const size_t n = hn::Lanes(df);
  const size_t columns = block.columns - first_column;
  const size_t vectors = (columns + n - 1) / n;
  const size_t width = kPanelVectors * n;
  HWY_ALIGN float tile[kPanelRows * kPanelVectors * hn::MaxLanes(df)] = {};
  HWY_ALIGN float addend[kPanelRows * kPanelVectors * hn::MaxLanes(df)] = {};
  float* const result = block.result + first_row * block.result_stride + first_column;
  ProductBlock last = block;
  for (size_t r = 0; r < rows; ++r) {
    if (!block.is_first) {
      std::memcpy(tile + r * width, result + r * block.result_stride, columns * sizeof(float));
    }
    if (block.finish.addend != nullptr) {
      std::memcpy(addend + r * width,
                  block.finish.addend + (first_row + r) * block.finish.addend_stride + first_column,
                  columns * sizeof(float));
    }
  }
  if (block.finish.row_addends != nullptr) last.finish.row_addends += first_row;
  if (block.finish.addend != nullptr) last.finish.addend = addend;
  last.finish.addend_stride = width;
  TileOf(block, rows, vectors)(last, a, b, 0, 0, tile, width);
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(result + r * block.result_stride, tile + r * width, columns * sizeof(float));
  }
}

// The tiles of a panel of A and a panel of B.
HWY_INLINE void MultiplyPanels(const ProductBlock& block, size_t row, size_t column) {
  const size_t width = kPanelVectors * hn::Lanes(df);
  const size_t rows = std::min(block.panel_rows, block.rows - row);
  const float* const a = block.a + row * (block.a_stride == 0 ? block.depth : block.a_stride);
  const float* const b = block.b + column / width * block.b_panel;
  if (column + width > block.columns) {
    MultiplyLastColumns(block, a, b, row, rows, column);
    return;
  }
  TileOf(block, rows, kPanelVectors)(block, a, b, row, column,
                                     block.result + row * block.result_stride + column,
                                     block.result_stride);
}

// A panel of A stays in the first cache while the panels of B come from the second one, or the
// other way round.
void Multiply(const ProductBlock& block) {
  const size_t width = kPanelVectors * hn::Lanes(df);
  if (block.b_comes_once) {
    for (size_t column = 0; column < block.columns; column += width) {
      for (size_t row = 0; row < block.rows; row += block.panel_rows) {
        MultiplyPanels(block, row, column);
      }
    }
    return;
  }
  for (size_t row = 0; row < block.rows; row += block.panel_rows) {
    for (size_t column = 0; column < block.columns; column += width) {
      MultiplyPanels(block, row, column);
    }
  }
}

void PackRow(const float* from, size_t count, float* to, size_t panel_stride) {
  const size_t n = hn::Lanes(df);
  const size_t width = kPanelVectors * n;
  size_t i = 0;
  for (; i + width <= count; i += width, to += panel_stride) {
    const V low = hn::LoadU(df, from + i);
    const V high = hn::LoadU(df, from + i + n);
    hn::StoreU(low, df, to);
    hn::StoreU(high, df, to + n);
  }
  if (i == count) return;
  std::memcpy(to, from + i, (count - i) * sizeof(float));
  std::fill(to + (count - i), to + width, 0.0f);
}

// 4 x 4 numbers at a time.
HWY_INLINE void TransposePart(const float* from, size_t from_stride, size_t rows, size_t depth,
                              float* to, size_t to_stride) {
  size_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> dd;
  for (; r + 4 <= rows; r += 4) {
    const float* const p = from + r * from_stride;
    size_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      const auto a = hn::LoadU(d4, p + k);
      const auto b = hn::LoadU(d4, p + from_stride + k);
      const auto c = hn::LoadU(d4, p + 2 * from_stride + k);
      const auto d = hn::LoadU(d4, p + 3 * from_stride + k);
      const auto ab01 = hn::BitCast(dd, hn::InterleaveLower(d4, a, b));
      const auto ab23 = hn::BitCast(dd, hn::InterleaveUpper(d4, a, b));
      const auto cd01 = hn::BitCast(dd, hn::InterleaveLower(d4, c, d));
      const auto cd23 = hn::BitCast(dd, hn::InterleaveUpper(d4, c, d));
      float* const q = to + k * to_stride + r;
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(dd, ab01, cd01)), d4, q);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(dd, ab01, cd01)), d4, q + to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(dd, ab23, cd23)), d4, q + 2 * to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(dd, ab23, cd23)), d4, q + 3 * to_stride);
    }
    for (; k < depth; ++k) {
      for (size_t i = 0; i < 4; ++i) to[k * to_stride + r + i] = p[i * from_stride + k];
    }
  }
#endif
  for (; r < rows; ++r) {
    for (size_t k = 0; k < depth; ++k) to[k * to_stride + r] = from[r * from_stride + k];
  }
}

// In parts of which the first cache holds both sides.
void Transpose(const float* from, size_t from_stride, size_t rows, size_t depth, float* to,
               size_t to_stride) {
  constexpr size_t kPart = 64;
  for (size_t k = 0; k < depth; k += kPart) {
    TransposePart(from + k, from_stride, rows, std::min(kPart, depth - k), to + k * to_stride,
                  to_stride);
  }
}

void EverySecond(const float* from, size_t count, float* to) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const size_t n = hn::Lanes(df);
  // The last number that a load reads is from[2 * (i + n) - 1], which must be before the end.
  for (; i + n < count; i += n) {
    V even;
    V odd;
    hn::LoadInterleaved2(df, from + 2 * i, even, odd);
    hn::StoreU(even, df, to + i);
  }
#endif
  for (; i < count; ++i) to[i] = from[2 * i];
}

template <size_t kVectors>
HWY_INLINE void WeighVectors(const float* const* taps, const float* weights, size_t tap_count,
                             V addend, size_t at, float* result) {
  const size_t n = hn::Lanes(df);
  V sums[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(df);
  for (size_t t = 0; t < tap_count; ++t) {
    const V weight = hn::Set(df, weights[t]);
    const float* const from = taps[t] + at;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(df, from + v * n), sums[v]);
    }
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    hn::StoreU(hn::Add(sums[v], addend), df, result + v * n);
  }
}

void Weigh(const float* const* taps, const float* weights, size_t tap_count, float addend,
           size_t count, float* result) {
  const size_t n = hn::Lanes(df);
  const V add = hn::Set(df, addend);
  size_t i = 0;
  for (; i + 4 * n <= count; i += 4 * n) {
    WeighVectors<4>(taps, weights, tap_count, add, i, result + i);
  }
  for (; i + n <= count; i += n) {
    WeighVectors<1>(taps, weights, tap_count, add, i, result + i);
  }
  if (i == count) return;
  HWY_ALIGN float rest[hn::MaxLanes(df)];
  WeighVectors<1>(taps, weights, tap_count, add, i, rest);
  std::memcpy(result + i, rest, (count - i) * sizeof(float));
}

// The rows of B are read as eight streams.
void WeighRows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t b_stride,
               size_t depth, size_t count, float* HWY_RESTRICT sums) {
  constexpr size_t kStreams = 8;
  const size_t n = hn::Lanes(df);
  std::fill_n(sums, count, 0.0f);
  for (size_t k = 0; k < depth; k += kStreams) {
    const size_t streams = std::min(kStreams, depth - k);
    V weights[kStreams];
    const float* rows[kStreams];
    for (size_t s = 0; s < kStreams; ++s) {
      weights[s] = hn::Set(df, s < streams ? a[k + s] : 0.0f);
      rows[s] = b + (s < streams ? k + s : k) * b_stride;
    }
    size_t i = 0;
    if (streams == kStreams) {
      for (; i + n <= count; i += n) {
        V even = hn::Mul(weights[0], hn::LoadU(df, rows[0] + i));
        V odd = hn::Mul(weights[1], hn::LoadU(df, rows[1] + i));
        HWY_UNROLL(3)
        for (size_t s = 2; s < kStreams; s += 2) {
          even = hn::MulAdd(weights[s], hn::LoadU(df, rows[s] + i), even);
          odd = hn::MulAdd(weights[s + 1], hn::LoadU(df, rows[s + 1] + i), odd);
        }
        hn::StoreU(hn::Add(hn::LoadU(df, sums + i), hn::Add(even, odd)), df, sums + i);
      }
    }
    for (; i < count; ++i) {
      float sum = 0;
      for (size_t s = 0; s < streams; ++s) sum += a[k + s] * rows[s][i];
      sums[i] += sum;
    }
  }
}

// Four rows at a time, so that enough loads are in flight.
template <size_t kRows>
HWY_INLINE void DotRows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t b_stride,
                        size_t depth, float* sums) {
  const size_t n = hn::Lanes(df);
  V parts[kRows][2];
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r) parts[r][0] = parts[r][1] = hn::Zero(df);
  size_t k = 0;
  for (; k + 2 * n <= depth; k += 2 * n) {
    const V low = hn::LoadU(df, a + k);
    const V high = hn::LoadU(df, a + k + n);
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
      const float* const row = b + r * b_stride + k;
      parts[r][0] = hn::MulAdd(low, hn::LoadU(df, row), parts[r][0]);
      parts[r][1] = hn::MulAdd(high, hn::LoadU(df, row + n), parts[r][1]);
    }
  }
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r) {
    float sum = hn::GetLane(hn::SumOfLanes(df, hn::Add(parts[r][0], parts[r][1])));
    for (size_t i = k; i < depth; ++i) sum += a[i] * b[r * b_stride + i];
    sums[r] = sum;
  }
}

void Dots(const float* a, const float* b, size_t b_stride, size_t rows, size_t depth, float* sums) {
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) DotRows<4>(a, b + r * b_stride, b_stride, depth, sums + r);
  for (; r < rows; ++r) DotRows<1>(a, b + r * b_stride, b_stride, depth, sums + r);
}

MatrixKernels Kernels() {
  return {.panel_rows = kPanelRows,
          .panel_columns = kPanelVectors * hn::Lanes(df),
          .multiply = &Multiply,
          .pack_row = &PackRow,
          .transpose = &Transpose,
          .every_second = &EverySecond,
          .weigh = &Weigh,
          .weigh_rows = &WeighRows,
          .dots = &Dots};
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(Kernels);

MatrixKernels FindMatrixKernels() { return HWY_DYNAMIC_DISPATCH(Kernels)(); }

}  // namespace opmill
#endif  // HWY_ONCE
