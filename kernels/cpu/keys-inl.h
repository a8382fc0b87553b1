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

#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// If kLeast, the least element has the greatest key.
template <class T, bool kLeast>
struct IntegerKeys {
  using Key = T;
  static constexpr bool kIsFloat = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Key* from) {
    const auto x = hn::LoadU(d, from);
    if constexpr (kLeast) return hn::Not(x);
    return x;
  }
  static Key Of(Key x) { return kLeast ? static_cast<Key>(~x) : x; }
};

// Keys for floats, from their bits. -0 equals +0, and all NaNs are equal: they have the least key
// if kNanLast, otherwise the greatest.
template <class TI, bool kLeast, bool kNanLast>
struct FloatKeys {
  using Key = TI;
  static constexpr bool kIsFloat = true;
  static constexpr bool kOfLeast = kLeast;
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
  // The bits of an element with this key. The least key of all stands for no element, and gives the
  // infinity that every element precedes or equals.
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
};

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
