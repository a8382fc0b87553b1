// Conversions of halves that do not depend on the driver: some flush denormals, some round to zero.
#include "include/elements.hlsli"

// Of a half in the low 16 bits; exact. All halves but zero are normal floats.
FLOATS FloatOfHalf(UINTS bits) {
  UINTS magnitude = (bits & 0x7FFFu) << 13;
  // 2^-14 + magnitude - 2^-14, for denormals.
  FLOATS denormal = asfloat(magnitude + 0x38800000u) - asfloat(0x38800000u);
  UINTS normal = magnitude + (magnitude < 0x0F800000u ? (UINTS)0x38000000 : (UINTS)0x70000000);
  UINTS value = magnitude < 0x00800000u ? asuint(denormal) : normal;
  return asfloat(value | ((bits & 0x8000u) << 16));
}

// The nearest half, ties to even, in the low 16 bits: without a driver's rounding.
UINTS HalfBits(FLOATS x) {
  UINTS bits = asuint(x);
  UINTS sign = (bits >> 16) & 0x8000u;
  UINTS magnitude = bits & 0x7FFFFFFFu;
  // Below 2^-14: a multiple of 2^-24.
  BOOLS small = magnitude < 0x38800000u;
  UINTS shift = small ? min(126u - (magnitude >> 23), 31u) : (UINTS)13;
  UINTS kept = small ? (magnitude & 0x007FFFFFu) | 0x00800000u : magnitude - 0x38000000u;
  UINTS half = kept >> shift;
  UINTS rest = kept - (half << shift);
  half += rest + (half & 1u) > (1u << (shift - 1u)) ? (UINTS)1 : (UINTS)0;
  half = magnitude >= 0x477FF000u ? (UINTS)0x7C00 : half;  // 65520 and more round to infinity
  half = magnitude > 0x7F800000u ? (UINTS)0x7E00 : half;
  return sign | half;
}
