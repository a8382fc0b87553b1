// log_sum_exp in one pass over memory. A state is a reference and the sum of e^(x - reference). The
// reference is the maximum so far or at most kSlack less, so that it seldom grows; when it grows,
// the sum is scaled. An infinite or NaN reference is the result.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/base/half.h"
#include "kernels/operators/reduction/fold_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/reduction/fold_log_sum_exp_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/operators/reduction/simple_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kSlack = 16;  // 2^32 terms of e^16 do not overflow a double

// e^x for x <= kSlack, within 2 ulp. Results are at least e^-87, which is negligible beside the
// term of the reference itself, 1. The polynomial is that of Cephes' expf.
HWY_INLINE VF Exp(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  x = hn::Max(x, hn::Set(d, -87.0f));
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
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

// Sums are in double precision, because each scaling rounds them.
struct SumAndReference {
  double sum;
  float reference;

  void Add(double other_sum, float other_reference) {
    if (std::isnan(reference) || std::isnan(other_reference)) {
      reference = std::numeric_limits<float>::quiet_NaN();
      return;
    }
    const float greatest = std::max(reference, other_reference);
    if (!std::isinf(greatest)) {
      const double to = greatest;
      sum = sum * std::exp(reference - to) + other_sum * std::exp(other_reference - to);
    }
    reference = greatest;
  }
};

template <class T>
struct LogSumExpFold {
  static constexpr size_t kStateBytes = sizeof(double) + sizeof(float);
  static constexpr size_t kBlock = 512;

  static double* Sums(void* states, size_t width) { return Plane<double>(states, width, 0); }
  static float* References(void* states, size_t width) {
    return Plane<float>(states, width, sizeof(double));
  }

  static void Init(void* states, size_t width, uint64_t /*position*/) {
    std::fill_n(Sums(states, width), PaddedWidth(width), 0.0);
    std::fill_n(References(states, width), PaddedWidth(width), -kInfinity);
  }

  static HWY_INLINE VF LoadPart(const T* from, size_t count) {
    HWY_ALIGN T rest[kStateStep];
    const size_t n = hn::Lanes(DF());
    for (size_t i = 0; i < n; ++i) rest[i] = from[0];
    std::memcpy(rest, from, count * sizeof(T));
    return LoadFloats(DF(), rest);
  }

  static HWY_INLINE SumAndReference OfBlock(const T* from, size_t count) {
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
      a = hn::Add(a, Exp(hn::Sub(hn::Load(d, floats + i), to)));
      b = hn::Add(b, Exp(hn::Sub(hn::Load(d, floats + i + n), to)));
    }
    for (; i < whole; i += n) a = hn::Add(a, Exp(hn::Sub(hn::Load(d, floats + i), to)));
    if (whole < count) {
      const auto last = Exp(hn::Sub(hn::Load(d, floats + whole), to));
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
    SumAndReference state = {Sums(states, width)[at], References(states, width)[at]};
    for (size_t i = 0; i < count; i += kBlock) {
      const SumAndReference block = OfBlock(from + i, std::min(kBlock, count - i));
      state.Add(block.sum, block.reference);
    }
    Sums(states, width)[at] = state.sum;
    References(states, width)[at] = state.reference;
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

  // Raises the references to the maximum of some rows, and scales the sums.
  template <class Load>
  static HWY_NOINLINE void Raise(size_t count, Load load, double* sums, float* references) {
    const DF d;
    const auto before = hn::Load(d, references);
    auto greatest = before;
    auto nan = hn::VecFromMask(d, hn::IsNaN(before));
    for (size_t j = 0; j < count; ++j) {
      const auto x = load(j);
      greatest = hn::Max(greatest, x);
      nan = hn::Or(nan, hn::VecFromMask(d, hn::IsNaN(x)));
    }
    hn::Store(hn::IfThenElse(hn::IsNaN(nan), nan, greatest), d, references);
    // The sum does not matter if the reference is infinite or NaN.
    const auto to = hn::Max(greatest, hn::Set(d, kLowest));
    ScaleAndAdd(Exp(hn::Sub(before, to)), hn::Zero(d), sums);
  }

  template <size_t kCount, class Load>
  static HWY_INLINE void FoldColumn(Load load, double* sums, float* references) {
    const DF d;
    VF x[kCount];
    HWY_UNROLL(8)
    for (size_t j = 0; j < kCount; ++j) x[j] = load(j);
    auto reference = hn::Load(d, references);
    const auto limit = hn::Add(reference, hn::Set(d, kSlack));
    auto fits = hn::Le(x[0], limit);  // false for NaN
    HWY_UNROLL(8)
    for (size_t j = 1; j < kCount; ++j) fits = hn::And(fits, hn::Le(x[j], limit));
    if (HWY_UNLIKELY(!hn::AllTrue(d, fits))) {
      Raise(kCount, load, sums, references);
      reference = hn::Load(d, references);
    }
    const auto to = hn::Max(reference, hn::Set(d, kLowest));
    auto terms = hn::Zero(d);
    HWY_UNROLL(8)
    for (size_t j = 0; j < kCount; ++j) terms = hn::Add(terms, Exp(hn::Sub(x[j], to)));
    ScaleAndAdd(hn::Set(d, 1.0f), terms, sums);
  }

  template <size_t kCount>
  static HWY_INLINE void FoldRows(const void* const* rows, double* sums, float* references,
                                  size_t width) {
    const DF d;
    const size_t n = hn::Lanes(d);
    const size_t whole = width / n * n;
    const T* p[kCount];
    for (size_t j = 0; j < kCount; ++j) p[j] = static_cast<const T*>(rows[j]);
    for (size_t i = 0; i < whole; i += n) {
      FoldColumn<kCount>([&](size_t j) HWY_ATTR { return LoadFloats(d, p[j] + i); }, sums + i,
                         references + i);
    }
    if (whole == width) return;
    FoldColumn<kCount>([&](size_t j) HWY_ATTR { return LoadPart(p[j] + whole, width - whole); },
                       sums + whole, references + whole);
  }

  static void Columns(const void* const* rows, size_t row_count, uint64_t /*position*/,
                      void* states, size_t width) {
    double* sums = Sums(states, width);
    float* references = References(states, width);
    size_t r = 0;
    for (; r + 8 <= row_count; r += 8) FoldRows<8>(rows + r, sums, references, width);
    for (; r < row_count; ++r) FoldRows<1>(rows + r, sums, references, width);
  }

  static void Merge(void* into, const void* from, size_t width) {
    void* other = const_cast<void*>(from);
    for (size_t i = 0; i < width; ++i) {
      SumAndReference state = {Sums(into, width)[i], References(into, width)[i]};
      state.Add(Sums(other, width)[i], References(other, width)[i]);
      Sums(into, width)[i] = state.sum;
      References(into, width)[i] = state.reference;
    }
  }

  static void Store(float value, float* to) { *to = value; }
  static void Store(float value, Half* to) { to->bits = FloatToHalf(value); }

  static void Finish(const void* states, size_t width, uint64_t /*count*/, void* results) {
    void* own = const_cast<void*>(states);
    for (size_t i = 0; i < width; ++i) {
      const float reference = References(own, width)[i];
      float value = reference;
      if (std::isnan(reference)) value = std::numeric_limits<float>::quiet_NaN();
      if (std::isfinite(reference)) {
        value = static_cast<float>(reference + std::log(Sums(own, width)[i]));
      }
      Store(value, static_cast<T*>(results) + i);
    }
  }

  static FoldKernels Kernels() {
    return {kStateBytes, kStateBytes, Init, Row, Columns, Merge, Finish};
  }
};

FoldKernels LogSumExpsOf(DataType type) {
  return type == DataType::kFloat16 ? LogSumExpFold<Half>::Kernels()
                                    : LogSumExpFold<float>::Kernels();
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(LogSumExpsOf);

FoldKernels LogSumExpKernels(DataType type) { return HWY_DYNAMIC_DISPATCH(LogSumExpsOf)(type); }

}  // namespace opmill
#endif  // HWY_ONCE
