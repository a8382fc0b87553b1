#include <algorithm>
#include <cstring>
#include <utility>

#include "hwy/cache_control.h"
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

// Sums of a tile stay in registers: 24 or 28 of the 32 of AVX-512, 12 of the 16 of others.
constexpr size_t kPanelRows = hn::MaxLanes(df) == 16 ? 12 : 6;
constexpr size_t kStripRows = hn::MaxLanes(df) == 16 ? 14 : 6;
constexpr size_t kPanelVectors = 2;

// Where the numbers of A for a row of B are.
enum class RowsOfA {
  kPanel,   // adjacent, in a panel
  kApart,   // a_stride apart
  kStrip,   // adjacent, at a_offsets[k]
  kStrips,  // the same in two strips, each half of the rows
};

// A tile of a product. `ahead` is what later tiles read: `ahead_step` bytes are prefetched for each
// row of B.
struct TilePlace {
  const float* a = nullptr;
  const float* b = nullptr;
  float* b_copy = nullptr;
  size_t first_row = 0;
  size_t first_column = 0;
  float* result = nullptr;
  size_t result_stride = 0;
  // If B has offsets: from the first vector of a row to the second.
  size_t b_second = hn::MaxLanes(df);
  size_t result_second = hn::MaxLanes(df);
  const uint8_t* ahead = nullptr;
  size_t ahead_step = 0;
};

// Into the second cache: the first one is full.
HWY_INLINE void PrefetchLater(const uint8_t* from) {
#if defined(__GNUC__)
  __builtin_prefetch(from, 0, 2);
#else
  hwy::Prefetch(from);
#endif
}

// As the operator: never -0, and NaN is the usual one.
HWY_INLINE V Relu(V x) {
  const V positive = hn::IfThenElseZero(hn::Gt(x, hn::Zero(df)), x);
  const hn::RebindToUnsigned<decltype(df)> du;
  return hn::IfThenElse(hn::Eq(x, x), positive, hn::BitCast(df, hn::Set(du, 0x7FC00000u)));
}

// Where the rows of B are.
enum class RowsOfB {
  kApart,    // b_stride apart
  kCopied,   // the same, and they are copied
  kOffsets,  // at b_offsets[k]
};

// A tile of `kRows` rows and `kVectors` vectors of columns. The loops over them are unrolled.
template <size_t kRows, size_t kVectors, RowsOfA kRowsOfA, RowsOfB kRowsOfB>
void Tile(const ProductBlock& block, const TilePlace& place) {
  constexpr bool kIsApart = kRowsOfA == RowsOfA::kApart;
  constexpr bool kIsStrip = kRowsOfA == RowsOfA::kStrip || kRowsOfA == RowsOfA::kStrips;
  constexpr bool kHasOffsets = kRowsOfB == RowsOfB::kOffsets;
  // Many tiles in a row have the same panel of A if B has offsets.
  constexpr bool kPrefetches = !kHasOffsets;
  constexpr size_t kRowsAhead = 12;  // of B, if the processor may not foresee them
  const size_t n = hn::Lanes(df);
  const size_t a_stride = block.a_stride;
  const size_t panel_rows = block.panel_rows;
  const size_t b_stride = block.b_stride;
  const size_t b_second = place.b_second;
  const size_t result_second = kHasOffsets ? place.result_second : n;
  const float* HWY_RESTRICT a = place.a;
  const float* HWY_RESTRICT b = place.b;
  float* HWY_RESTRICT b_copy = place.b_copy;
  V sums[kRows][kVectors];
  HWY_UNROLL(14)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(df);
  }
  // Three rows share a pointer, so that the pointers fit into the registers.
  const float* HWY_RESTRICT thirds[(kRows + 2) / 3];
  HWY_UNROLL(5)
  for (size_t r = 0; r < kRows; r += 3) thirds[r / 3] = a + (kIsApart ? r * a_stride : r);
  const uint8_t* ahead = place.ahead;
  const size_t ahead_step = place.ahead_step;
  for (size_t k = 0; k < block.depth; ++k) {
    if (kPrefetches) PrefetchLater(ahead);
    ahead += ahead_step;
    V columns[kVectors];
    HWY_UNROLL(2)
    for (size_t v = 0; v < kVectors; ++v) {
      columns[v] = hn::LoadU(df, kHasOffsets ? b + block.b_offsets[k] + v * b_second : b + v * n);
    }
    if (kRowsOfB == RowsOfB::kCopied) {
      HWY_UNROLL(2)
      for (size_t v = 0; v < kVectors; ++v) {
        hwy::Prefetch(b + kRowsAhead * b_stride + v * n);
        hn::StoreU(columns[v], df, b_copy + v * n);
      }
      b_copy += kVectors * n;
    }
    if (!kHasOffsets) b += b_stride;
    const float* const strip = kIsStrip ? a + block.a_offsets[k] : a;
    const float* const second =
        kRowsOfA == RowsOfA::kStrips ? strip + block.strip_stride - kRows / 2 : strip;
    HWY_UNROLL(14)
    for (size_t r = 0; r < kRows; ++r) {
      const V row = hn::Set(df, kIsApart        ? thirds[r / 3][r % 3 * a_stride]
                                : r < kRows / 2 ? strip[r]
                                                : second[r]);
      HWY_UNROLL(2)
      for (size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(row, columns[v], sums[r][v]);
      }
    }
    if (!kIsStrip) a += panel_rows;
    HWY_UNROLL(5)
    for (size_t r = 0; r < kRows; r += 3) ++thirds[r / 3];
  }
  const ProductFinish& finish = block.finish;
  const V alpha = hn::Set(df, finish.alpha);
  const V beta = hn::Set(df, finish.beta);
  HWY_UNROLL(14)
  for (size_t r = 0; r < kRows; ++r) {
    float* const to = place.result + r * place.result_stride;
    HWY_UNROLL(2)
    for (size_t v = 0; v < kVectors; ++v) {
      V sum = sums[r][v];
      if (!block.is_first) sum = hn::Add(hn::LoadU(df, to + v * result_second), sum);
      if (block.is_last) {
        sum = hn::Mul(sum, alpha);
        if (finish.row_addends != nullptr) {
          sum = hn::Add(sum, hn::Set(df, finish.row_addends[place.first_row + r]));
        }
        if (finish.addend != nullptr) {
          const float* const addend =
              finish.addend + (place.first_row + r) * finish.addend_stride + place.first_column;
          sum = hn::MulAdd(beta, hn::LoadU(df, addend + v * n), sum);
        }
        if (finish.has_relu) sum = Relu(sum);
      }
      hn::StoreU(sum, df, to + v * result_second);
    }
  }
}

using TileFunction = void (*)(const ProductBlock&, const TilePlace&);

// By the rows and the vectors of a tile.
struct TileTable {
  TileFunction at[kStripRows + 1][kPanelVectors + 1];
};

template <RowsOfA kRowsOfA, RowsOfB kRowsOfB, size_t... kRows>
constexpr TileTable MakeTiles(std::index_sequence<kRows...>) {
  TileTable table = {};
  ((table.at[kRows + 1][1] = &Tile<kRows + 1, 1, kRowsOfA, kRowsOfB>,
    table.at[kRows + 1][2] = &Tile<kRows + 1, 2, kRowsOfA, kRowsOfB>),
   ...);
  return table;
}
template <size_t... kHalves>
constexpr TileTable MakePairs(std::index_sequence<kHalves...>) {
  TileTable table = {};
  ((table.at[2 * kHalves + 2][1] = &Tile<2 * kHalves + 2, 1, RowsOfA::kStrips, RowsOfB::kApart>,
    table.at[2 * kHalves + 2][2] = &Tile<2 * kHalves + 2, 2, RowsOfA::kStrips, RowsOfB::kApart>),
   ...);
  return table;
}
template <RowsOfA kRowsOfA, RowsOfB kRowsOfB>
constexpr TileTable kTiles = MakeTiles<kRowsOfA, kRowsOfB>(std::make_index_sequence<kPanelRows>());
constexpr TileTable kStripTiles =
    MakeTiles<RowsOfA::kStrip, RowsOfB::kApart>(std::make_index_sequence<kStripRows>());
constexpr TileTable kPairTiles = MakePairs(std::make_index_sequence<kStripRows / 2>());

template <RowsOfB kRowsOfB>
const TileTable& TilesOf(bool is_packed) {
  return is_packed ? kTiles<RowsOfA::kPanel, kRowsOfB> : kTiles<RowsOfA::kApart, kRowsOfB>;
}

TileFunction TileOf(const ProductBlock& block, size_t rows, size_t vectors) {
  const bool is_packed = block.a_stride == 0;
  const TileTable& tiles = block.b_offsets != nullptr ? TilesOf<RowsOfB::kOffsets>(is_packed)
                           : block.b_copy != nullptr  ? TilesOf<RowsOfB::kCopied>(is_packed)
                                                      : TilesOf<RowsOfB::kApart>(is_packed);
  return tiles.at[rows][vectors];
}

// What the tiles of a panel prefetch: in equal parts, `bytes` from `from` on.
class Prefetches {
 public:
  // The same for each tile: a line of each row of B.
  Prefetches(const float* from, size_t stride)
      : next_(reinterpret_cast<const uint8_t*>(from)), step_(stride * sizeof(float)) {}
  Prefetches(const float* from, size_t bytes, size_t tiles, size_t depth)
      : next_(reinterpret_cast<const uint8_t*>(from)),
        tile_bytes_(bytes / tiles),
        step_(tile_bytes_ / std::max<size_t>(depth, 1)) {}

  void AddTo(TilePlace& place) {
    place.ahead = next_;
    place.ahead_step = step_;
    next_ += tile_bytes_;
  }

 private:
  const uint8_t* next_;
  size_t tile_bytes_ = 0;
  size_t step_ = 0;
};

// The last columns, which fill less than the vectors: through memory of whole vectors.
HWY_NOINLINE void MultiplyLastColumns(const ProductBlock& block, size_t rows,
                                      const TilePlace& place) {
  const size_t n = hn::Lanes(df);
  const size_t columns = block.columns - place.first_column;
  const size_t vectors = (columns + n - 1) / n;
  const size_t width = kPanelVectors * n;
  HWY_ALIGN float tile[kPanelRows * kPanelVectors * hn::MaxLanes(df)] = {};
  HWY_ALIGN float addend[kPanelRows * kPanelVectors * hn::MaxLanes(df)] = {};
  ProductBlock last = block;
  for (size_t r = 0; r < rows; ++r) {
    if (!block.is_first) {
      std::memcpy(tile + r * width, place.result + r * block.result_stride,
                  columns * sizeof(float));
    }
    if (block.finish.addend != nullptr) {
      std::memcpy(addend + r * width,
                  block.finish.addend + (place.first_row + r) * block.finish.addend_stride +
                      place.first_column,
                  columns * sizeof(float));
    }
  }
  if (block.finish.row_addends != nullptr) last.finish.row_addends += place.first_row;
  if (block.finish.addend != nullptr) last.finish.addend = addend;
  last.finish.addend_stride = width;
  TilePlace of_tile = place;
  of_tile.first_row = 0;
  of_tile.first_column = 0;
  of_tile.result = tile;
  of_tile.result_stride = width;
  of_tile.result_second = n;
  TileOf(block, rows, vectors)(last, of_tile);
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(place.result + r * block.result_stride, tile + r * width, columns * sizeof(float));
  }
}

// The tiles of a panel of A and a panel of B.
HWY_INLINE void MultiplyPanels(const ProductBlock& block, size_t row, size_t column,
                               Prefetches& prefetches) {
  const size_t width = kPanelVectors * hn::Lanes(df);
  const size_t rows = std::min(block.panel_rows, block.rows - row);
  TilePlace place = {
      .a = block.a + row * (block.a_stride == 0 ? block.depth : block.a_stride),
      .b = block.b + column / width * block.b_panel,
      .first_row = row,
      .first_column = column,
      .result = block.result + row * block.result_stride + column,
      .result_stride = block.result_stride,
  };
  if (block.b_copy != nullptr) place.b_copy = block.b_copy + column * block.depth;
  prefetches.AddTo(place);
  if (column + width > block.columns) {
    MultiplyLastColumns(block, rows, place);
  } else {
    TileOf(block, rows, kPanelVectors)(block, place);
  }
}

// Rows of A in strips. A panel of B stays in the second cache for all of them.
void MultiplyStrips(const ProductBlock& block) {
  const size_t n = hn::Lanes(df);
  const size_t width = kPanelVectors * n;
  const size_t strips = block.rows / block.strip_rows;
  const bool has_pairs = 2 * block.strip_rows <= kStripRows;
  const size_t parts = (block.strip_rows + kStripRows - 1) / kStripRows;
  const size_t part_rows = (block.strip_rows + parts - 1) / parts;
  const size_t tiles = has_pairs ? (strips + 1) / 2 : strips * parts;
  for (size_t column = 0; column < block.columns; column += width) {
    const size_t vectors = std::min(kPanelVectors, (block.columns - column) / n);
    TilePlace place = {.b = block.b + column / width * block.b_panel,
                       .first_column = column,
                       .result_stride = block.result_stride};
    Prefetches prefetches(place.b + block.b_panel, block.b_panel * sizeof(float), tiles,
                          block.depth);
    for (size_t strip = 0; strip < strips;) {
      const bool is_pair = has_pairs && strip + 1 < strips;
      for (size_t row = 0; row < block.strip_rows; row += part_rows) {
        const size_t rows = std::min(part_rows, block.strip_rows - row);
        place.a = block.a + strip * block.strip_stride + row;
        place.first_row = strip * block.strip_rows + row;
        place.result = block.result + place.first_row * block.result_stride + column;
        prefetches.AddTo(place);
        (is_pair ? kPairTiles.at[2 * rows][vectors] : kStripTiles.at[rows][vectors])(block, place);
      }
      strip += is_pair ? 2 : 1;
    }
  }
}

// Columns of lines. Where a line does not fill its last vector, what is stored behind it belongs to
// the next line, which is computed later; behind the last line nothing is stored.
void MultiplyLines(const ProductBlock& block) {
  const size_t n = hn::Lanes(df);
  const size_t line_vectors = (block.line_columns + n - 1) / n;
  const size_t rest = block.line_columns % n;
  const size_t whole = block.columns / block.line_columns * line_vectors - (rest > 0 ? 1 : 0);
  const auto b_at = [&](size_t vector) {
    return vector / line_vectors * block.line_width + vector % line_vectors * n;
  };
  const auto result_at = [&](size_t vector) {
    return vector / line_vectors * block.line_columns + vector % line_vectors * n;
  };
  for (size_t row = 0; row < block.rows; row += block.panel_rows) {
    const size_t rows = std::min(block.panel_rows, block.rows - row);
    TilePlace place = {.a = block.a + row * (block.a_stride == 0 ? block.depth : block.a_stride),
                       .first_row = row,
                       .result_stride = block.result_stride};
    float* const result = block.result + row * block.result_stride;
    for (size_t vector = 0; vector < whole; vector += kPanelVectors) {
      const size_t vectors = std::min(kPanelVectors, whole - vector);
      place.b = block.b + b_at(vector);
      place.result = result + result_at(vector);
      place.b_second = b_at(vector + 1) - b_at(vector);
      place.result_second = result_at(vector + 1) - result_at(vector);
      TileOf(block, rows, vectors)(block, place);
    }
    if (rest == 0) continue;
    place.b = block.b + b_at(whole);
    place.result = result + result_at(whole);
    place.first_column = block.columns - rest;
    MultiplyLastColumns(block, rows, place);
  }
}

// A panel of A stays in the first cache while the panels of B come from the second one, or the
// other way round.
void Multiply(const ProductBlock& block) {
  if (block.a_offsets != nullptr) {
    MultiplyStrips(block);
    return;
  }
  if (block.line_columns > 0) {
    MultiplyLines(block);
    return;
  }
  const size_t width = kPanelVectors * hn::Lanes(df);
  const size_t row_panels = (block.rows + block.panel_rows - 1) / block.panel_rows;
  const size_t column_panels = (block.columns + width - 1) / width;
  if (block.b_comes_once) {
    for (size_t column = 0; column < block.columns; column += width) {
      Prefetches prefetches(block.b + (column / width + 1) * block.b_panel, block.b_stride);
      if (block.b_stride == width) {
        prefetches = Prefetches(block.b + (column / width + 1) * block.b_panel,
                                width * block.depth * sizeof(float), row_panels, block.depth);
      }
      for (size_t row = 0; row < block.rows; row += block.panel_rows) {
        MultiplyPanels(block, row, column, prefetches);
      }
    }
    return;
  }
  ProductBlock copied = block;
  if (block.b_copy != nullptr) {
    copied.b = block.b_copy;
    copied.b_stride = width;
    copied.b_panel = width * block.depth;
    copied.b_copy = nullptr;
  }
  for (size_t row = 0; row < block.rows; row += block.panel_rows) {
    const size_t bytes = block.panel_rows * block.depth * sizeof(float);
    Prefetches prefetches(
        block.a + (row + block.panel_rows) * (block.a_stride == 0 ? block.depth : block.a_stride),
        bytes, column_panels, block.depth);
    for (size_t column = 0; column < block.columns; column += width) {
      MultiplyPanels(row == 0 ? block : copied, row, column, prefetches);
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

// `count` elements, fewer than a vector has. Reads no others.
HWY_INLINE V LoadFirst(const float* from, size_t count) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(df, count), df, from);
#else
  HWY_ALIGN float elements[hn::MaxLanes(df)] = {};
  std::memcpy(elements, from, count * sizeof(float));
  return hn::Load(df, elements);
#endif
}

// The vector of `count` elements at `from`, or of every second one. Reads no others.
template <size_t kStep>
HWY_INLINE V LoadSome(const float* from, size_t count) {
  const size_t n = hn::Lanes(df);
  if (kStep == 1) return count >= n ? hn::LoadU(df, from) : LoadFirst(from, count);
#if HWY_TARGET == HWY_SCALAR
  return hn::LoadU(df, from);
#else
  const size_t span = 2 * count - 1;
  const V low = span >= n ? hn::LoadU(df, from) : LoadFirst(from, span);
  if (span <= n) return hn::ConcatEven(df, hn::Zero(df), low);
  const V high = span >= 2 * n ? hn::LoadU(df, from + n) : LoadFirst(from + n, span - n);
  return hn::ConcatEven(df, high, low);
#endif
}

template <size_t kStep>
void CopyLinesBy(const LineCopy& copy, float* to) {
  const size_t n = hn::Lanes(df);
  const auto fill = [&](size_t count) HWY_ATTR {
    for (size_t i = 0; i < count; i += n) hn::StoreU(hn::Zero(df), df, to + i);
    to += count;
  };
  const float* from = copy.from;
  for (size_t line = 0; line < copy.lines; ++line, from += copy.from_stride) {
    fill(copy.before);
    for (size_t i = 0; i < copy.count; i += n) {
      hn::StoreU(LoadSome<kStep>(from + kStep * i, copy.count - i), df, to + i);
    }
    to += copy.count;
    fill(copy.after);
  }
}

void CopyLines(const LineCopy& copy, float* to) {
  if (copy.step == 1) {
    CopyLinesBy<1>(copy, to);
  } else {
    CopyLinesBy<2>(copy, to);
  }
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

// Four rows at a time, so that enough loads are in flight. Each is read to its end, which the
// processor's prefetching needs.
template <size_t kRows>
HWY_INLINE void DotRows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t b_stride,
                        size_t depth, size_t block_depth, float* sums) {
  constexpr size_t kAhead = 256;
  const size_t n = hn::Lanes(df);
  for (size_t begin = 0; begin < depth; begin += block_depth) {
    const size_t end = std::min(begin + block_depth, depth);
    V parts[kRows][2];
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) parts[r][0] = parts[r][1] = hn::Zero(df);
    size_t k = begin;
    for (; k + 2 * n <= end; k += 2 * n) {
      const V low = hn::LoadU(df, a + k);
      const V high = hn::LoadU(df, a + k + n);
      HWY_UNROLL(4)
      for (size_t r = 0; r < kRows; ++r) {
        const float* const row = b + r * b_stride + k;
        hwy::Prefetch(row + kAhead);
        hwy::Prefetch(row + kAhead + n);
        parts[r][0] = hn::MulAdd(low, hn::LoadU(df, row), parts[r][0]);
        parts[r][1] = hn::MulAdd(high, hn::LoadU(df, row + n), parts[r][1]);
      }
    }
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
      float sum = hn::GetLane(hn::SumOfLanes(df, hn::Add(parts[r][0], parts[r][1])));
      for (size_t i = k; i < end; ++i) sum += a[i] * b[r * b_stride + i];
      sums[r] = begin == 0 ? sum : sums[r] + sum;
    }
  }
}

void Dots(const float* a, const float* b, size_t b_stride, size_t rows, size_t depth,
          size_t block_depth, float* sums) {
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    DotRows<4>(a, b + r * b_stride, b_stride, depth, block_depth, sums + r);
  }
  for (; r < rows; ++r) DotRows<1>(a, b + r * b_stride, b_stride, depth, block_depth, sums + r);
}

MatrixKernels Kernels() {
  return {.panel_rows = kPanelRows,
          .strip_rows = kStripRows,
          .lanes = hn::Lanes(df),
          .panel_columns = kPanelVectors * hn::Lanes(df),
          .multiply = &Multiply,
          .pack_row = &PackRow,
          .transpose = &Transpose,
          .copy_lines = &CopyLines,
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

MatrixKernels FindMatrixKernels() {
  MatrixKernels kernels = HWY_DYNAMIC_DISPATCH(Kernels)();
  kernels.window = FindWindowKernel();
  kernels.winograd = FindWinogradKernels();
  return kernels;
}

}  // namespace opmill
#endif  // HWY_ONCE
