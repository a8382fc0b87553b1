#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/operators/matrix/winograd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/matrix/winograd_kernels_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> df;
constexpr hn::RebindToSigned<decltype(df)> di;
using V = hn::Vec<decltype(df)>;
using Magnitude = hn::Vec<decltype(di)>;

// Four of the points; the others are 0 and infinity.
constexpr double kNear = 0.70710678118654752;  // and its negative
constexpr double kFar = 1.4142135623730951;    // their reciprocals

HWY_INLINE V Times(double factor, V v) {
  return hn::Mul(hn::Set(df, static_cast<float>(factor)), v);
}
// a * factor + b
HWY_INLINE V AddTimes(double factor, V a, V b) {
  return hn::MulAdd(hn::Set(df, static_cast<float>(factor)), a, b);
}

// Six inputs along a side, in place.
HWY_INLINE void TransformInput(V (&d)[kTileInputs]) {
  const V near_even = AddTimes(-2, d[2], d[4]);
  const V near_odd = AddTimes(-2, d[1], d[3]);
  const V far_even = AddTimes(-0.5, d[2], d[4]);
  const V far_odd = AddTimes(-0.5, d[1], d[3]);
  d[0] = AddTimes(-2.5, d[2], hn::Add(d[0], d[4]));
  d[5] = AddTimes(-2.5, d[3], hn::Add(d[1], d[5]));
  d[1] = AddTimes(kNear, near_odd, near_even);
  d[2] = AddTimes(-kNear, near_odd, near_even);
  d[3] = AddTimes(kFar, far_odd, far_even);
  d[4] = AddTimes(-kFar, far_odd, far_even);
}

// Four outputs along a side of six products.
HWY_INLINE void TransformOutput(const V (&m)[kTileInputs], V (&y)[kTileSide]) {
  const V near_even = hn::Add(m[1], m[2]);
  const V near_odd = hn::Sub(m[1], m[2]);
  const V far_even = hn::Add(m[3], m[4]);
  const V far_odd = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(m[0], hn::Add(near_even, far_even));
  y[1] = AddTimes(kNear, near_odd, Times(kFar, far_odd));
  y[2] = AddTimes(0.5, near_even, hn::Add(far_even, far_even));
  y[3] = hn::Add(AddTimes(kNear / 2, near_odd, Times(2 * kFar, far_odd)), m[5]);
}

// Transforms columns of six lines; line i of the result is i * to_stride further.
HWY_INLINE void TransformColumns(const float* lines, size_t line_stride, size_t width, float* to,
                                 size_t to_stride, Magnitude& largest) {
  for (size_t x = 0; x < width; x += hn::Lanes(df)) {
    V d[kTileInputs];
    HWY_UNROLL(6)
    for (size_t i = 0; i < kTileInputs; ++i) {
      d[i] = hn::LoadU(df, lines + i * line_stride + x);
      largest = hn::Max(largest, hn::BitCast(di, hn::Abs(d[i])));
    }
    TransformInput(d);
    HWY_UNROLL(6)
    for (size_t i = 0; i < kTileInputs; ++i) hn::StoreU(d[i], df, to + i * to_stride + x);
  }
}

// First along columns, for all rows of tiles, so that vectors are full along rows even where a row
// has few tiles.
float TransformInputs(const float* lines, size_t line_stride, const TileRows& tiles, float* memory,
                      float* to, size_t to_stride) {
  const size_t width = tiles.width();
  const size_t stride = tiles.count() * kTileSide + kTileReadAhead;
  float* const firsts = memory;                        // the first four inputs of each tile
  float* const lasts = memory + kTileInputs * stride;  // the two after them
  Magnitude largest = hn::Zero(di);
  for (size_t row = 0; row < tiles.rows; ++row) {
    const float* const from = lines + row * kTileSide * line_stride;
    TransformColumns(from, line_stride, width, firsts + row * width, stride, largest);
    TransformColumns(from + kTileSide, line_stride, width, lasts + row * width, stride, largest);
  }
  // What is read behind the last tile, which must not be slow to multiply.
  for (size_t i = 0; i < 2 * kTileInputs; ++i) {
    std::fill_n(memory + i * stride + tiles.count() * kTileSide, hn::Lanes(df) * kTileSide, 0.0f);
  }
  for (size_t i = 0; i < kTileInputs; ++i) {
    for (size_t t = 0; t < tiles.count(); t += hn::Lanes(df)) {
      V d[kTileInputs];
      V unused;
      V unused_too;
      hn::LoadInterleaved4(df, firsts + i * stride + t * kTileSide, d[0], d[1], d[2], d[3]);
      hn::LoadInterleaved4(df, lasts + i * stride + t * kTileSide, d[4], d[5], unused, unused_too);
      TransformInput(d);
      HWY_UNROLL(6)
      for (size_t j = 0; j < kTileInputs; ++j)
        hn::StoreU(d[j], df, to + (i * kTileInputs + j) * to_stride + t);
    }
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, largest)));
}

// `count` elements, fewer than a vector has. Writes no others.
HWY_INLINE void StoreFirst(V v, size_t count, float* to) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(df, count), df, to);
#else
  HWY_ALIGN float elements[hn::MaxLanes(df)];
  hn::Store(v, df, elements);
  std::memcpy(to, elements, count * sizeof(float));
#endif
}

void TransformOutputs(const float* from, size_t from_stride, const TileRows& tiles, float addend,
                      size_t lines, size_t width, float* memory, float* to) {
  const size_t n = hn::Lanes(df);
  const size_t stride = tiles.count() * kTileSide + kTileReadAhead;
  for (size_t i = 0; i < kTileInputs; ++i) {
    for (size_t t = 0; t < tiles.count(); t += n) {
      V m[kTileInputs];
      HWY_UNROLL(6)
      for (size_t j = 0; j < kTileInputs; ++j)
        m[j] = hn::LoadU(df, from + (i * kTileInputs + j) * from_stride + t);
      V y[kTileSide];
      TransformOutput(m, y);
      hn::StoreInterleaved4(y[0], y[1], y[2], y[3], df, memory + i * stride + t * kTileSide);
    }
  }
  const V add = hn::Set(df, addend);
  for (size_t row = 0; row < tiles.rows; ++row) {
    const float* const products = memory + row * tiles.width();
    const size_t row_lines = std::min(kTileSide, lines - row * kTileSide);
    for (size_t x = 0; x < width; x += n) {
      V m[kTileInputs];
      HWY_UNROLL(6)
      for (size_t i = 0; i < kTileInputs; ++i) m[i] = hn::LoadU(df, products + i * stride + x);
      V y[kTileSide];
      TransformOutput(m, y);
      for (size_t line = 0; line < row_lines; ++line) {
        const V result = hn::Add(y[line], add);
        float* const at = to + (row * kTileSide + line) * width + x;
        if (x + n <= width) {
          hn::StoreU(result, df, at);
        } else {
          StoreFirst(result, width - x, at);
        }
      }
    }
  }
}

WinogradKernels MakeKernels() {
  return {.transform_inputs = &TransformInputs, .transform_outputs = &TransformOutputs};
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(MakeKernels);

WinogradKernels FindWinogradKernels() { return HWY_DYNAMIC_DISPATCH(MakeKernels)(); }

std::array<double, kTileNumbers> TransformFilter(const std::array<double, 9>& filter) {
  const double near = std::sqrt(0.5) / 1.5;
  const double far = std::sqrt(2.0) / 6;
  const double rows[kTileInputs][3] = {{1, 0, 0},
                                       {-1 / 1.5, -near, -0.5 / 1.5},
                                       {-1 / 1.5, near, -0.5 / 1.5},
                                       {1.0 / 6, far, 2.0 / 6},
                                       {1.0 / 6, -far, 2.0 / 6},
                                       {0, 0, 1}};
  double columns[kTileInputs][3] = {};
  for (size_t i = 0; i < kTileInputs; ++i) {
    for (size_t x = 0; x < 3; ++x) {
      for (size_t y = 0; y < 3; ++y) columns[i][x] += rows[i][y] * filter[y * 3 + x];
    }
  }
  std::array<double, kTileNumbers> numbers = {};
  for (size_t i = 0; i < kTileInputs; ++i) {
    for (size_t j = 0; j < kTileInputs; ++j) {
      for (size_t x = 0; x < 3; ++x) numbers[i * kTileInputs + j] += columns[i][x] * rows[j][x];
    }
  }
  return numbers;
}

}  // namespace opmill
#endif  // HWY_ONCE
