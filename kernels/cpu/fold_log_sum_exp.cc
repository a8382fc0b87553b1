// log_sum_exp in one pass over memory: the maximum so far, and the sum of e^(x - maximum), which is
// scaled when the maximum grows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/base/half.h"
#include "kernels/cpu/fold_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fold_log_sum_exp.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

// e^x of x <= 0, within 2 ulp; 0 where that is not a normal number. The polynomial is that of
// Cephes' expf.
HWY_INLINE VF ExpOfNegative(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const auto least = hn::Set(d, -87.0f);
  const auto tiny = hn::Lt(x, least);
  x = hn::Max(x, least);
  // Adding 1.5 * 2^23 rounds to an integer, and leaves it in the low bits.
  const auto magic = hn::Set(d, 12582912.0f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const auto n = hn::Sub(shifted, magic);
  auto r = hn::MulAdd(n, hn::Set(d, -0.693359375f), x);
  r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const auto result = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElse(tiny, hn::Zero(d), result);
}

// In double precision, since a sum that is scaled many times is rounded as often.
struct SumAndMaximum {
  double sum;
  float maximum;

  void Add(double other_sum, float other_maximum) {
    if (std::isnan(maximum) || std::isnan(other_maximum)) {
      maximum = std::numeric_limits<float>::quiet_NaN();
      return;
    }
    const float greatest = std::max(maximum, other_maximum);
    if (!std::isinf(greatest)) {
      const double to = greatest;
      sum = sum * std::exp(maximum - to) + other_sum * std::exp(other_maximum - to);
    }
    maximum = greatest;
  }
};

template <class T>
struct LogSumExpFold {
  static constexpr size_t kStateBytes = sizeof(double) + sizeof(float);
  static constexpr size_t kBlock = 512;

  static double* Sums(void* states, size_t width) { return Plane<double>(states, width, 0); }
  static float* Maxima(void* states, size_t width) {
    return Plane<float>(states, width, sizeof(double));
  }

  static void Init(void* states, size_t width, uint64_t /*position*/) {
    std::fill_n(Sums(states, width), PaddedWidth(width), 0.0);
    std::fill_n(Maxima(states, width), PaddedWidth(width), -kInfinity);
  }

  static HWY_INLINE VF LoadPart(const T* from, size_t count) {
    HWY_ALIGN T rest[kStateStep];
    const size_t n = hn::Lanes(DF());
    for (size_t i = 0; i < n; ++i) rest[i] = from[0];
    std::memcpy(rest, from, count * sizeof(T));
    return LoadFloats(DF(), rest);
  }

  static HWY_INLINE SumAndMaximum OfBlock(const T* from, size_t count) {
    const DF d;
    const size_t n = hn::Lanes(d);
    const size_t whole = count / n * n;
    HWY_ALIGN float floats[kBlock + kStateStep];
    auto greatest = hn::Set(d, -kInfinity);
    auto nan = hn::Zero(d);
    const auto see = [&](VF x, size_t i) HWY_ATTR {
      hn::Store(x, d, floats + i);
      greatest = hn::Max(greatest, x);
      nan = hn::Or(nan, hn::VecFromMask(d, hn::IsNaN(x)));
    };
    for (size_t i = 0; i < whole; i += n) see(LoadFloats(d, from + i), i);
    if (whole < count) see(LoadPart(from + whole, count - whole), whole);
    if (!hn::AllFalse(d, hn::IsNaN(nan))) {
      return {0, std::numeric_limits<float>::quiet_NaN()};
    }
    HWY_ALIGN float lanes[kStateStep];
    hn::Store(greatest, d, lanes);
    const float maximum = *std::max_element(lanes, lanes + n);
    if (std::isinf(maximum)) return {0, maximum};
    const auto to = hn::Set(d, maximum);
    auto a = hn::Zero(d);
    auto b = a;
    size_t i = 0;
    for (; i + 2 * n <= whole; i += 2 * n) {
      a = hn::Add(a, ExpOfNegative(hn::Sub(hn::Load(d, floats + i), to)));
      b = hn::Add(b, ExpOfNegative(hn::Sub(hn::Load(d, floats + i + n), to)));
    }
    for (; i < whole; i += n) a = hn::Add(a, ExpOfNegative(hn::Sub(hn::Load(d, floats + i), to)));
    if (whole < count) {
      const auto last = ExpOfNegative(hn::Sub(hn::Load(d, floats + whole), to));
      b = hn::Add(b, hn::IfThenElseZero(hn::FirstN(d, count - whole), last));
    }
    hn::Store(hn::Add(a, b), d, lanes);
    double sum = 0;
    for (size_t lane = 0; lane < n; ++lane) sum += lanes[lane];
    return {sum, maximum};
  }

  static void Row(const void* elements, size_t count, uint64_t /*position*/, void* states,
                  size_t width, size_t at) {
    const T* from = static_cast<const T*>(elements);
    SumAndMaximum state = {Sums(states, width)[at], Maxima(states, width)[at]};
    for (size_t i = 0; i < count; i += kBlock) {
      const SumAndMaximum block = OfBlock(from + i, std::min(kBlock, count - i));
      state.Add(block.sum, block.maximum);
    }
    Sums(states, width)[at] = state.sum;
    Maxima(states, width)[at] = state.maximum;
  }

  // sums = sums * scale + terms
  static HWY_INLINE void ScaleAndAdd(VF scale, VF terms, double* sums) {
    const DF d;
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> dh;
    HWY_ALIGN float scales[kStateStep];
    HWY_ALIGN float added[kStateStep];
    hn::Store(scale, d, scales);
    hn::Store(terms, d, added);
    for (size_t i = 0; i < hn::Lanes(d); i += hn::Lanes(dd)) {
      const auto by = hn::PromoteTo(dd, hn::Load(dh, scales + i));
      const auto term = hn::PromoteTo(dd, hn::Load(dh, added + i));
      hn::Store(hn::MulAdd(hn::Load(dd, sums + i), by, term), dd, sums + i);
    }
  }

  template <class Load>
  static HWY_INLINE void FoldColumn(size_t count, Load load, double* sums, float* maxima) {
    const DF d;
    const auto before = hn::Load(d, maxima);
    auto greatest = before;
    auto nan = hn::VecFromMask(d, hn::IsNaN(before));
    for (size_t j = 0; j < count; ++j) {
      const auto x = load(j);
      greatest = hn::Max(greatest, x);
      nan = hn::Or(nan, hn::VecFromMask(d, hn::IsNaN(x)));
    }
    greatest = hn::IfThenElse(hn::IsNaN(nan), nan, greatest);
    // Where the maximum is infinite or NaN it is the result, and the sum is of no use.
    const auto to = hn::Max(greatest, hn::Set(d, kLowest));
    auto terms = hn::Zero(d);
    for (size_t j = 0; j < count; ++j) {
      terms = hn::Add(terms, ExpOfNegative(hn::Sub(load(j), to)));
    }
    hn::Store(greatest, d, maxima);
    ScaleAndAdd(ExpOfNegative(hn::Sub(before, to)), terms, sums);
  }

  static void Columns(const void* const* rows, size_t row_count, uint64_t /*position*/,
                      void* states, size_t width) {
    const DF d;
    const size_t n = hn::Lanes(d);
    const size_t whole = width / n * n;
    double* sums = Sums(states, width);
    float* maxima = Maxima(states, width);
    for (size_t r = 0; r < row_count; r += 8) {
      const size_t count = std::min<size_t>(8, row_count - r);
      const T* p[8];
      for (size_t j = 0; j < count; ++j) p[j] = static_cast<const T*>(rows[r + j]);
      for (size_t i = 0; i < whole; i += n) {
        FoldColumn(
            count, [&](size_t j) HWY_ATTR { return LoadFloats(d, p[j] + i); }, sums + i,
            maxima + i);
      }
      if (whole == width) continue;
      FoldColumn(
          count, [&](size_t j) HWY_ATTR { return LoadPart(p[j] + whole, width - whole); },
          sums + whole, maxima + whole);
    }
  }

  static void Merge(void* into, const void* from, size_t width) {
    void* other = const_cast<void*>(from);
    for (size_t i = 0; i < width; ++i) {
      SumAndMaximum state = {Sums(into, width)[i], Maxima(into, width)[i]};
      state.Add(Sums(other, width)[i], Maxima(other, width)[i]);
      Sums(into, width)[i] = state.sum;
      Maxima(into, width)[i] = state.maximum;
    }
  }

  static void Store(float value, float* to) { *to = value; }
  static void Store(float value, Half* to) { to->bits = FloatToHalf(value); }

  static void Finish(const void* states, size_t width, uint64_t /*count*/, void* results) {
    void* own = const_cast<void*>(states);
    for (size_t i = 0; i < width; ++i) {
      const float maximum = Maxima(own, width)[i];
      float value = maximum;
      if (std::isnan(maximum)) value = std::numeric_limits<float>::quiet_NaN();
      if (std::isfinite(maximum)) {
        value = static_cast<float>(maximum + std::log(Sums(own, width)[i]));
      }
      Store(value, static_cast<T*>(results) + i);
    }
  }

  static FoldKernels Kernels() { return {kStateBytes, Init, Row, Columns, Merge, Finish}; }
};

FoldKernels LogSumExpsOf(CpuElement element) {
  return element == CpuElement::kF16 ? LogSumExpFold<Half>::Kernels()
                                     : LogSumExpFold<float>::Kernels();
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(LogSumExpsOf);

FoldKernels LogSumExpKernels(CpuElement element) {
  return HWY_DYNAMIC_DISPATCH(LogSumExpsOf)(element);
}

}  // namespace opmill
#endif  // HWY_ONCE
