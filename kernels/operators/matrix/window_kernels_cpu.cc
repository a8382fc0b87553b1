#include <algorithm>

#include "kernels/operators/matrix/window_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/matrix/window_kernels_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86

constexpr hn::ScalableTag<float> df;
using V = hn::Vec<decltype(df)>;

HWY_INLINE hn::Mask<decltype(df)> MaskOf(const uint16_t& lanes) {
  return hn::LoadMaskBits(df, reinterpret_cast<const uint8_t*>(&lanes));
}

// Adds what a tap reads to kLines lines, which are `stride` apart.
template <size_t kStep, size_t kLines>
HWY_INLINE void AddTap(const float* from, size_t stride, const uint16_t* inside, float weight,
                       V (&sums)[kLines]) {
  const auto low = MaskOf(inside[0]);
  const auto high = MaskOf(inside[kStep - 1]);
  const V factor = hn::Set(df, weight);
  HWY_UNROLL(4)
  for (size_t i = 0; i < kLines; ++i) {
    V input = hn::MaskedLoad(low, df, from + i * stride);
    if constexpr (kStep == 2) {
      const V next = hn::MaskedLoad(high, df, from + i * stride + hn::Lanes(df));
      input = hn::ConcatEven(df, next, input);
    }
    sums[i] = hn::MulAdd(factor, input, sums[i]);
  }
}

// kLines vectors of outputs, one below the other, all of whose taps are in lines of the plane.
template <size_t kStep, size_t kTaps, size_t kLines>
HWY_INLINE void WindowLines(const WindowShape& shape, const float* from, const uint16_t* inside,
                            const float* weights, V (&sums)[kLines]) {
  const WindowShape::Tap* const taps = shape.taps.data();
  const size_t stride = shape.steps[0] * shape.line_stride;
  HWY_UNROLL(25)
  for (size_t t = 0; t < kTaps; ++t) {
    AddTap<kStep>(from + taps[t].offset, stride, inside + kStep * t, weights[t], sums);
  }
}

// There are kTaps taps, or if that is 0, any number.
template <size_t kStep, size_t kTaps>
void WindowOf(const WindowShape& shape, const float* plane, const float* weights, float addend,
              float* result) {
  constexpr size_t kLines = 4;
  const size_t n = hn::Lanes(df);
  const size_t tap_count = shape.taps.size();
  const V add = hn::Set(df, addend);
  const size_t stride = shape.steps[0] * shape.line_stride;
  const auto lines = static_cast<int64_t>(shape.sizes[0]);
  const uint16_t* inside = shape.inside.data();
  for (size_t x = 0; x < shape.outputs[1]; x += n, inside += kStep * tap_count) {
    const auto stored = hn::FirstN(df, std::min(n, shape.outputs[1] - x));
    const auto store = [&](V sum, size_t y) HWY_ATTR {
      hn::BlendedStore(hn::Add(sum, add), stored, df, result + y * shape.outputs[1] + x);
    };
    for (size_t y = 0; y < shape.outputs[0];) {
      const float* const from = plane + y * stride + x * kStep;
      if (kTaps > 0 && y >= shape.inner_begin && y + kLines <= shape.inner_end) {
        V sums[kLines];
        HWY_UNROLL(4)
        for (size_t i = 0; i < kLines; ++i) sums[i] = hn::Zero(df);
        WindowLines<kStep, kTaps>(shape, from, inside, weights, sums);
        HWY_UNROLL(4)
        for (size_t i = 0; i < kLines; ++i) store(sums[i], y + i);
        y += kLines;
        continue;
      }
      V sums[1] = {hn::Zero(df)};
      if (kTaps > 0 && y >= shape.inner_begin && y < shape.inner_end) {
        WindowLines<kStep, kTaps>(shape, from, inside, weights, sums);
      } else {
        for (size_t t = 0; t < tap_count; ++t) {
          const int64_t line = static_cast<int64_t>(y * shape.steps[0]) + shape.taps[t].line;
          if (line < 0 || line >= lines) continue;
          AddTap<kStep>(from + shape.taps[t].offset, stride, inside + kStep * t, weights[t], sums);
        }
      }
      store(sums[0], y++);
    }
  }
}

template <size_t kStep>
WindowKernel KernelOf(size_t taps) {
  return taps == 9 ? &WindowOf<kStep, 9> : taps == 25 ? &WindowOf<kStep, 25> : &WindowOf<kStep, 0>;
}

void Window(const WindowShape& shape, const float* plane, const float* weights, float addend,
            float* result) {
  const size_t taps = shape.taps.size();
  (shape.steps[1] == 1 ? KernelOf<1>(taps) : KernelOf<2>(taps))(shape, plane, weights, addend,
                                                                result);
}

WindowKernel Kernel() { return &Window; }

#else

WindowKernel Kernel() { return nullptr; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(Kernel);

WindowShape::WindowShape(const std::vector<std::array<int64_t, 2>>& window,
                         std::array<size_t, 2> plane, size_t stride, std::array<size_t, 2> step,
                         std::array<size_t, 2> results, size_t lanes)
    : sizes(plane), line_stride(stride), steps(step), outputs(results) {
  int64_t first = 0;
  int64_t last = 0;
  for (const auto& [line, column] : window) {
    taps.push_back({line, line * static_cast<int64_t>(line_stride) + column});
    first = std::min(first, line);
    last = std::max(last, line);
  }
  const auto is_inner = [&](size_t y) {
    const auto at = static_cast<int64_t>(y * steps[0]);
    return at + first >= 0 && at + last < static_cast<int64_t>(sizes[0]);
  };
  while (inner_begin < outputs[0] && !is_inner(inner_begin)) ++inner_begin;
  inner_end = inner_begin;
  while (inner_end < outputs[0] && is_inner(inner_end)) ++inner_end;
  for (size_t x = 0; x < outputs[1]; x += lanes) {
    for (const auto& tap : window) {
      for (size_t s = 0; s < steps[1]; ++s) {
        const auto begin = static_cast<int64_t>(x * steps[1] + s * lanes) + tap[1];
        uint16_t bits = 0;
        for (size_t i = 0; i < lanes; ++i) {
          const int64_t at = begin + static_cast<int64_t>(i);
          if (at >= 0 && at < static_cast<int64_t>(sizes[1])) bits |= uint16_t(1u << i);
        }
        inside.push_back(bits);
      }
    }
  }
}

WindowKernel FindWindowKernel() { return HWY_DYNAMIC_DISPATCH(Kernel)(); }

}  // namespace opmill
#endif  // HWY_ONCE
