// Sums and products. Floats are accumulated in double precision, so that the error stays within the
// bound for any order and number of terms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/base/half.h"
#include "kernels/operators/reduction/fold_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/reduction/fold_sum_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/operators/reduction/simple_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

enum class Term { kItself, kMagnitude, kSquare };

// Highway's own conversion turns infinity into the greatest number on targets without vectors.
template <class DF, class VD>
HWY_INLINE hn::Vec<DF> Rounded(DF df, VD values) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(df, static_cast<float>(hn::GetLane(values)));
#else
  return hn::DemoteTo(df, values);
#endif
}

template <class E, Term kTerm, bool kProduct, ReduceFunction kFunction>
struct FloatSum {
  using T = E;
  using DD = hn::ScalableTag<double>;
  using DF = hn::Rebind<float, DD>;
  // Sums of eight FLOAT16 elements are accurate enough in FLOAT32, and cannot overflow.
  static constexpr bool kNarrow = std::is_same_v<E, Half> && !kProduct;
  using Part = std::conditional_t<kNarrow, hn::Vec<DF>, hn::Vec<DD>>;
  using Acc = hn::Vec<DD>;
  static constexpr size_t kStateBytes = sizeof(double);

  static HWY_INLINE size_t Unit() { return hn::Lanes(DD()); }
  static HWY_INLINE T Pad(const T*) {
    if constexpr (std::is_same_v<E, Half>) {
      return {static_cast<uint16_t>(kProduct ? 0x3C00 : 0)};
    } else {
      return kProduct ? 1.0f : 0.0f;
    }
  }
  template <class V>
  static HWY_INLINE V Apply(V x) {
    if constexpr (kTerm == Term::kMagnitude) return hn::Abs(x);
    if constexpr (kTerm == Term::kSquare) return hn::Mul(x, x);
    return x;
  }
  static HWY_INLINE Part Load(const T* from) {
    const auto x = LoadFloats(DF(), from);
    if constexpr (kNarrow) {
      return Apply(x);
    } else {
      return Apply(hn::PromoteTo(DD(), x));
    }
  }
  static HWY_INLINE Part Join(Part a, Part b) {
    if constexpr (kProduct) return hn::Mul(a, b);
    return hn::Add(a, b);
  }
  static HWY_INLINE Acc Fold(Acc acc, Part part) {
    if constexpr (kNarrow) {
      return hn::Add(acc, hn::PromoteTo(DD(), part));
    } else {
      return Join(acc, part);
    }
  }
  static HWY_INLINE Acc JoinLanes(Acc acc) requires(!kProduct) { return hn::SumOfLanes(DD(), acc); }
  static HWY_INLINE Acc Identity() { return hn::Set(DD(), kProduct ? 1.0 : 0.0); }
  static HWY_INLINE Acc LoadState(const void* states, size_t width, size_t i) {
    return hn::Load(DD(), Plane<double>(states, width, 0) + i);
  }
  static HWY_INLINE void StoreState(Acc acc, void* states, size_t width, size_t i) {
    hn::Store(acc, DD(), Plane<double>(states, width, 0) + i);
  }
  static HWY_INLINE void MergeLane(void* into, size_t width, size_t i, const void* from,
                                   size_t from_width, size_t j) {
    double& sum = Plane<double>(into, width, 0)[i];
    const double other = Plane<double>(from, from_width, 0)[j];
    sum = kProduct ? sum * other : sum + other;
  }
  static void Finish(const void* states, size_t width, uint64_t count, void* results) {
    const DD dd;
    const DF df;
    const auto n = hn::Set(dd, static_cast<double>(count));
    HWY_ALIGN float rounded[kStateStep];
    // Processes whole vectors; states and results are padded.
    for (size_t i = 0; i < width; i += Unit()) {
      auto value = LoadState(states, width, i);
      if constexpr (kFunction == ReduceFunction::kAverage) value = hn::Div(value, n);
      auto narrow = Rounded(df, value);
      // Functions of a sum use the sum as FLOAT32, which may have overflowed.
      if constexpr (kFunction == ReduceFunction::kL2) {
        narrow = Rounded(df, hn::Sqrt(hn::PromoteTo(dd, narrow)));
      }
      hn::Store(narrow, df, rounded);
      const size_t some = std::min(Unit(), width - i);
      if constexpr (kFunction == ReduceFunction::kLogSum) {
        for (size_t j = 0; j < some; ++j) {
          rounded[j] = static_cast<float>(std::log(double{rounded[j]}));
        }
      }
      if constexpr (std::is_same_v<E, float>) {
        const auto number = hn::Load(df, rounded);
        const auto nan = hn::Set(df, std::numeric_limits<float>::quiet_NaN());
        hn::StoreU(hn::IfThenElse(hn::IsNaN(number), nan, number), df,
                   static_cast<float*>(results) + i);
      } else {
        for (size_t j = 0; j < some; ++j) {
          static_cast<Half*>(results)[i + j].bits =
              std::isnan(rounded[j]) ? 0x7E00 : FloatToHalf(rounded[j]);
        }
      }
    }
  }
};

// Wraps. Signed elements are added as unsigned ones; only magnitudes depend on the sign.
template <class E, Term kTerm, bool kProduct>
struct IntegerSum {
  using T = std::make_unsigned_t<E>;
  using D = hn::ScalableTag<T>;
  using Part = hn::Vec<D>;
  using Acc = hn::Vec<D>;
  static constexpr size_t kStateBytes = sizeof(T);

  static HWY_INLINE size_t Unit() { return hn::Lanes(D()); }
  static HWY_INLINE T Pad(const T*) { return kProduct ? 1 : 0; }
  static HWY_INLINE Part Load(const T* from) {
    const auto x = hn::LoadU(D(), from);
    if constexpr (kTerm == Term::kMagnitude && std::is_signed_v<E>) {
      return hn::BitCast(D(), hn::Abs(hn::BitCast(hn::ScalableTag<E>(), x)));
    } else if constexpr (kTerm == Term::kSquare) {
      return hn::Mul(x, x);
    } else {
      return x;
    }
  }
  static HWY_INLINE Part Join(Part a, Part b) {
    if constexpr (kProduct) return hn::Mul(a, b);
    return hn::Add(a, b);
  }
  static HWY_INLINE Acc Fold(Acc acc, Part part) { return Join(acc, part); }
  static HWY_INLINE Acc Identity() { return hn::Set(D(), static_cast<T>(kProduct ? 1 : 0)); }
  static HWY_INLINE Acc LoadState(const void* states, size_t width, size_t i) {
    return hn::Load(D(), Plane<T>(states, width, 0) + i);
  }
  static HWY_INLINE void StoreState(Acc acc, void* states, size_t width, size_t i) {
    hn::Store(acc, D(), Plane<T>(states, width, 0) + i);
  }
  static HWY_INLINE void MergeLane(void* into, size_t width, size_t i, const void* from,
                                   size_t from_width, size_t j) {
    T& sum = Plane<T>(into, width, 0)[i];
    const T other = Plane<T>(from, from_width, 0)[j];
    sum = static_cast<T>(kProduct ? sum * other : sum + other);
  }
  static void Finish(const void* states, size_t width, uint64_t /*count*/, void* results) {
    std::memcpy(results, states, width * sizeof(T));
  }
};

template <class E>
FoldKernels OfFloats(ReduceFunction function) {
  switch (function) {
    case ReduceFunction::kAverage:
      return SimpleFold<FloatSum<E, Term::kItself, false, ReduceFunction::kAverage>>::Kernels();
    case ReduceFunction::kL1:
      return SimpleFold<FloatSum<E, Term::kMagnitude, false, ReduceFunction::kL1>>::Kernels();
    case ReduceFunction::kL2:
      return SimpleFold<FloatSum<E, Term::kSquare, false, ReduceFunction::kL2>>::Kernels();
    case ReduceFunction::kSumSquare:
      return SimpleFold<FloatSum<E, Term::kSquare, false, ReduceFunction::kSumSquare>>::Kernels();
    case ReduceFunction::kLogSum:
      return SimpleFold<FloatSum<E, Term::kItself, false, ReduceFunction::kLogSum>>::Kernels();
    case ReduceFunction::kMultiply:
      return SimpleFold<FloatSum<E, Term::kItself, true, ReduceFunction::kMultiply>>::Kernels();
    default:
      return SimpleFold<FloatSum<E, Term::kItself, false, ReduceFunction::kSum>>::Kernels();
  }
}

template <class E>
FoldKernels OfIntegers(ReduceFunction function) {
  using U = std::make_unsigned_t<E>;
  switch (function) {
    case ReduceFunction::kL1:
      return SimpleFold<IntegerSum<E, Term::kMagnitude, false>>::Kernels();
    case ReduceFunction::kSumSquare:
      return SimpleFold<IntegerSum<U, Term::kSquare, false>>::Kernels();
    case ReduceFunction::kMultiply:
      return SimpleFold<IntegerSum<U, Term::kItself, true>>::Kernels();
    default:
      return SimpleFold<IntegerSum<U, Term::kItself, false>>::Kernels();
  }
}

FoldKernels SumsOf(ReduceFunction function, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return OfFloats<float>(function);
    case DataType::kFloat16:
      return OfFloats<Half>(function);
    case DataType::kInt64:
      return OfIntegers<int64_t>(function);
    case DataType::kInt32:
      return OfIntegers<int32_t>(function);
    case DataType::kUint64:
      return OfIntegers<uint64_t>(function);
    default:  // sums support no other type
      return OfIntegers<uint32_t>(function);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(SumsOf);

FoldKernels SumKernels(ReduceFunction function, DataType type) {
  return HWY_DYNAMIC_DISPATCH(SumsOf)(function, type);
}

}  // namespace opmill
#endif  // HWY_ONCE
