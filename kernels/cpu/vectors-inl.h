// Loads of floats, shared by the kernels of one instruction set. Included once per instruction set.
// NOLINTBEGIN
#if defined(OPMILL_KERNELS_CPU_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMILL_KERNELS_CPU_VECTORS_INL_H_
#undef OPMILL_KERNELS_CPU_VECTORS_INL_H_
#else
#define OPMILL_KERNELS_CPU_VECTORS_INL_H_
#endif
// NOLINTEND

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Half {  // FLOAT16, as bits
  uint16_t bits;
};

// Exact for all values, including infinity and NaN. Highway's own conversion is not exact on all
// targets.
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const Half* from) {
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_TARGET == HWY_NEON
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<uint16_t, DF> dh;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const uint16_t*>(from)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFFu)));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  // Multiplying by 2^112 converts the exponent to the bias of FLOAT32, including denormals.
  const auto number = hn::Mul(hn::BitCast(df, magnitude), hn::Set(df, 0x1p112f));
  const hn::RebindToSigned<DF> di;
  const auto special = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, 0x0F7FFFFF));
  const auto result =
      hn::IfThenElse(hn::RebindMask(du, special), hn::Or(magnitude, hn::Set(du, 0x7F800000u)),
                     hn::BitCast(du, number));
  return hn::BitCast(df, hn::Or(result, sign));
#endif
}

template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF df, const float* from) {
  return hn::LoadU(df, from);
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
