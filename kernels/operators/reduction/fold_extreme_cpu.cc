// Minima and maxima.
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/element_dispatch.h"
#include "kernels/operators/reduction/fold_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/reduction/fold_extreme_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/operators/reduction/simple_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

template <class E, bool kMax>
struct IntegerExtreme {
  using T = E;
  using D = hn::ScalableTag<T>;
  using Part = hn::Vec<D>;
  using Acc = hn::Vec<D>;
  static constexpr size_t kStateBytes = sizeof(T);

  static HWY_INLINE size_t Unit() { return hn::Lanes(D()); }
  static HWY_INLINE T Pad(const T* row) { return *row; }
  static HWY_INLINE Part Load(const T* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE Part Join(Part a, Part b) {
    if constexpr (kMax) return hn::Max(a, b);
    return hn::Min(a, b);
  }
  static HWY_INLINE Acc Fold(Acc acc, Part part) { return Join(acc, part); }
  // Bytes have no such instructions.
  static HWY_INLINE Acc JoinLanes(Acc acc) requires(sizeof(T) > 1) {
    if constexpr (kMax) return hn::MaxOfLanes(D(), acc);
    return hn::MinOfLanes(D(), acc);
  }
  static HWY_INLINE Acc Identity() {
    return hn::Set(D(), kMax ? hwy::LimitsMin<T>() : hwy::LimitsMax<T>());
  }
  static HWY_INLINE Acc LoadState(const void* states, size_t width, size_t i) {
    return hn::Load(D(), Plane<T>(states, width, 0) + i);
  }
  static HWY_INLINE void StoreState(Acc acc, void* states, size_t width, size_t i) {
    hn::Store(acc, D(), Plane<T>(states, width, 0) + i);
  }
  static HWY_INLINE void MergeLane(void* into, size_t width, size_t i, const void* from,
                                   size_t from_width, size_t j) {
    T& best = Plane<T>(into, width, 0)[i];
    const T other = Plane<T>(from, from_width, 0)[j];
    best = (kMax ? other > best : other < best) ? other : best;
  }
  static void Finish(const void* states, size_t width, uint64_t /*count*/, void* results) {
    std::memcpy(results, states, width * sizeof(T));
  }
};

// As signed integers, the bits of nonnegative floats are in ascending order, and those of negative
// floats in descending order. Three extremes of the bits therefore suffice: the signed maximum is
// the greatest nonnegative number; the signed minimum is the negative number nearest to 0, or else
// the least nonnegative number; the unsigned maximum is the negative number farthest from 0. NaNs
// are beyond the infinities.
template <class TI, bool kMax>
struct FloatExtreme {
  using T = TI;
  using TU = std::make_unsigned_t<TI>;
  using DI = hn::ScalableTag<TI>;
  using DU = hn::ScalableTag<TU>;
  struct Part {
    hn::Vec<DI> greatest;
    hn::Vec<DI> least;
    hn::Vec<DU> farthest;
  };
  using Acc = Part;
  static constexpr size_t kStateBytes = 3 * sizeof(T);
  static constexpr TI kInfinity = sizeof(T) == 4 ? 0x7F80'0000 : 0x7C00;
  static constexpr TU kSign = static_cast<TU>(TU{1} << (8 * sizeof(T) - 1));
  static constexpr TI kNan = sizeof(T) == 4 ? 0x7FC0'0000 : 0x7E00;

  static HWY_INLINE size_t Unit() { return hn::Lanes(DI()); }
  static HWY_INLINE T Pad(const T* row) { return *row; }
  static HWY_INLINE Part Load(const T* from) {
    const auto x = hn::LoadU(DI(), from);
    return {x, x, hn::BitCast(DU(), x)};
  }
  static HWY_INLINE Part Join(Part a, Part b) {
    return {hn::Max(a.greatest, b.greatest), hn::Min(a.least, b.least),
            hn::Max(a.farthest, b.farthest)};
  }
  static HWY_INLINE Acc Fold(Acc acc, Part part) { return Join(acc, part); }
  static HWY_INLINE Acc JoinLanes(Acc acc) {
    return {hn::MaxOfLanes(DI(), acc.greatest), hn::MinOfLanes(DI(), acc.least),
            hn::MaxOfLanes(DU(), acc.farthest)};
  }
  static HWY_INLINE Acc Identity() {
    return {hn::Set(DI(), hwy::LimitsMin<TI>()), hn::Set(DI(), hwy::LimitsMax<TI>()),
            hn::Zero(DU())};
  }
  static HWY_INLINE Acc LoadState(const void* states, size_t width, size_t i) {
    return {hn::Load(DI(), Plane<TI>(states, width, 0) + i),
            hn::Load(DI(), Plane<TI>(states, width, sizeof(T)) + i),
            hn::Load(DU(), Plane<TU>(states, width, 2 * sizeof(T)) + i)};
  }
  static HWY_INLINE void StoreState(Acc acc, void* states, size_t width, size_t i) {
    hn::Store(acc.greatest, DI(), Plane<TI>(states, width, 0) + i);
    hn::Store(acc.least, DI(), Plane<TI>(states, width, sizeof(T)) + i);
    hn::Store(acc.farthest, DU(), Plane<TU>(states, width, 2 * sizeof(T)) + i);
  }
  static HWY_INLINE void MergeLane(void* into, size_t width, size_t i, const void* from,
                                   size_t from_width, size_t j) {
    const auto keep = [&]<class X>(X, size_t before, bool max) HWY_ATTR {
      X& best = Plane<X>(into, width, before)[i];
      const X other = Plane<X>(from, from_width, before)[j];
      best = (max ? other > best : other < best) ? other : best;
    };
    keep(TI{}, 0, true);
    keep(TI{}, sizeof(T), false);
    keep(TU{}, 2 * sizeof(T), true);
  }
  static void Finish(const void* states, size_t width, uint64_t /*count*/, void* results) {
    const DI d;
    // Processes whole vectors; states and results are padded.
    for (size_t i = 0; i < width; i += Unit()) {
      const Acc acc = LoadState(states, width, i);
      const auto farthest = hn::BitCast(d, acc.farthest);
      const auto nan =
          hn::Or(hn::Gt(acc.greatest, hn::Set(d, kInfinity)),
                 hn::RebindMask(
                     d, hn::Gt(acc.farthest, hn::Set(DU(), static_cast<TU>(kInfinity | kSign)))));
      const auto first = kMax ? acc.greatest : hn::Not(farthest);
      const auto best =
          hn::IfThenElse(hn::Lt(first, hn::Zero(d)), acc.least, kMax ? acc.greatest : farthest);
      hn::StoreU(hn::IfThenElse(nan, hn::Set(d, kNan), best), d, static_cast<TI*>(results) + i);
    }
  }
};

template <bool kMax>
FoldKernels Of(DataType type) {
  return WithBitsOf(type, [](auto bits, auto is_float) {
    using T = decltype(bits);
    using Extreme = std::conditional_t<decltype(is_float)::value, FloatExtreme<T, kMax>,
                                       IntegerExtreme<T, kMax>>;
    return SimpleFold<Extreme>::Kernels();
  });
}

FoldKernels ExtremesOf(ReduceFunction function, DataType type) {
  return function == ReduceFunction::kMax ? Of<true>(type) : Of<false>(type);
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(ExtremesOf);

FoldKernels ExtremeKernels(ReduceFunction function, DataType type) {
  return HWY_DYNAMIC_DISPATCH(ExtremesOf)(function, type);
}

}  // namespace opmill
#endif  // HWY_ONCE
