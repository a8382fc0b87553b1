// Maps elements to integers of the same size with the same order. Included once per instruction
// set.
// NOLINTBEGIN
#if defined(OPMILL_KERNELS_CPU_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMILL_KERNELS_CPU_KEYS_INL_H_
#undef OPMILL_KERNELS_CPU_KEYS_INL_H_
#else
#define OPMILL_KERNELS_CPU_KEYS_INL_H_
#endif
// NOLINTEND

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Joins eight vectors, in pairs.
template <class D, class Function>
HWY_INLINE hn::Vec<D> JoinEight(D d, const hn::TFromD<D>* from, Function join) {
  const size_t n = hn::Lanes(d);
  const auto a = join(hn::LoadU(d, from), hn::LoadU(d, from + n));
  const auto b = join(hn::LoadU(d, from + 2 * n), hn::LoadU(d, from + 3 * n));
  const auto c = join(hn::LoadU(d, from + 4 * n), hn::LoadU(d, from + 5 * n));
  const auto e = join(hn::LoadU(d, from + 6 * n), hn::LoadU(d, from + 7 * n));
  return join(join(a, b), join(c, e));
}
template <class D>
HWY_INLINE hn::Vec<D> GreatestOfEight(D d, const hn::TFromD<D>* from) {
  return JoinEight(d, from, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}
template <class D>
HWY_INLINE hn::Vec<D> LeastOfEight(D d, const hn::TFromD<D>* from) {
  return JoinEight(d, from, [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); });
}

// kLeast: the least element has the greatest key.
template <class T, bool kLeast>
struct IntegerKeys {
  using Key = T;
  static constexpr bool kIsFloat = false;
  static constexpr bool kNanIsLast = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Key* from) {
    const auto x = hn::LoadU(d, from);
    if constexpr (kLeast) return hn::Not(x);
    return x;
  }
  static Key Of(Key x) { return kLeast ? static_cast<Key>(~x) : x; }
  // Whether any key of eight vectors is greater.
  template <class D>
  static HWY_INLINE bool MayExceed(D d, const Key* from, Key key) {
    if constexpr (kLeast) {
      return !hn::AllFalse(d, hn::Lt(LeastOfEight(d, from), hn::Set(d, static_cast<Key>(~key))));
    }
    return !hn::AllFalse(d, hn::Gt(GreatestOfEight(d, from), hn::Set(d, key)));
  }
};

// Keys for floats, from their bits. -0 equals +0, and all NaNs are equal: they have the least key
// if kNanLast, otherwise the greatest.
template <class TI, bool kLeast, bool kNanLast>
struct FloatKeys {
  using Key = TI;
  static constexpr bool kIsFloat = true;
  static constexpr bool kOfLeast = kLeast;
  static constexpr bool kNanIsLast = kNanLast;
  static constexpr TI kInfinity = sizeof(TI) == 4 ? 0x7F80'0000 : 0x7C00;
  static constexpr TI kMagnitude = hwy::LimitsMax<TI>();
  static constexpr TI kNan = kNanLast ? hwy::LimitsMin<TI>() : hwy::LimitsMax<TI>();
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Key* from) {
    return Of(d, hn::LoadU(d, from));
  }
  template <class D, class V>
  static HWY_INLINE V Of(D d, V x) {
    const auto magnitude = hn::And(x, hn::Set(d, kMagnitude));
    const auto sign = hn::ShiftRight<8 * sizeof(TI) - 1>(x);
    const auto flipped = hn::Xor(magnitude, sign);
    const auto key = kLeast ? hn::Sub(sign, flipped) : hn::Sub(flipped, sign);
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kInfinity)), hn::Set(d, kNan), key);
  }
  // The bits of an element with this key. The least key means no element; it becomes the infinity
  // that is last.
  template <class D, class V>
  static HWY_INLINE V Bits(D d, V key) {
    const auto nan = hn::Eq(key, hn::Set(d, kMagnitude));
    key = hn::Min(hn::Max(key, hn::Set(d, static_cast<TI>(-kInfinity))), hn::Set(d, kInfinity));
    const auto sign = hn::ShiftRight<8 * sizeof(TI) - 1>(kLeast ? hn::Neg(key) : key);
    const auto bits = hn::Or(hn::Abs(key), hn::AndNot(hn::Set(d, kMagnitude), sign));
    return hn::IfThenElse(nan, hn::Set(d, kMagnitude), bits);
  }
  static Key Of(Key x) {
    const Key magnitude = x & kMagnitude;
    if (magnitude > kInfinity) return kNan;
    return (x < 0) != kLeast ? static_cast<Key>(-magnitude) : magnitude;
  }
  // Whether any key of eight vectors may be greater; false is certain. Compares bits: as signed
  // numbers they order nonnegative elements, as unsigned ones negative elements in reverse.
  template <class D>
  static HWY_INLINE bool MayExceed(D d, const TI* from, TI key) {
    static_assert(kLeast == kNanLast);
    using TU = std::make_unsigned_t<TI>;
    const hn::RebindToUnsigned<D> du;
    const TU* unsigned_from = reinterpret_cast<const TU*>(from);
    // The bits of the negative number with this magnitude.
    const auto bits = [](TI magnitude) { return static_cast<TU>(~kMagnitude | magnitude); };
    if constexpr (kLeast) {
      if (key > 0) {
        return !hn::AllFalse(du,
                             hn::Gt(GreatestOfEight(du, unsigned_from), hn::Set(du, bits(key))));
      }
      const TI limit = key == kNan ? kMagnitude : static_cast<TI>(-key);
      return !hn::AllFalse(d, hn::Lt(LeastOfEight(d, from), hn::Set(d, limit)));
    } else {
      const auto farthest = GreatestOfEight(du, unsigned_from);
      const auto nan = hn::Gt(farthest, hn::Set(du, bits(kInfinity)));
      if (key >= 0) {
        const auto wins = hn::Gt(GreatestOfEight(d, from), hn::Set(d, std::min(key, kInfinity)));
        return !hn::AllFalse(du, hn::Or(nan, hn::RebindMask(du, wins)));
      }
      const auto limit = hn::Set(du, bits(static_cast<TI>(-key)));
      return !hn::AllFalse(du, hn::Or(nan, hn::Lt(LeastOfEight(du, unsigned_from), limit)));
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
