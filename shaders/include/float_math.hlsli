// Float functions made of additions, multiplications and integer steps, so that their accuracy is
// ours and not the driver's: some drivers' exp2 and log2 are good to 2^-16 only. One return each, at
// the end: of an earlier one FXC says that it leaves the result uninitialised (X4000).
#include "include/elements.hlsli"
#include "include/half.hlsli"

#define FLOAT_INFINITY asfloat(0x7F800000u)
#define FLOAT_LARGEST asfloat(0x7F7FFFFFu)
#define FLOAT_NAN asfloat(0x7FC00000u)

BOOLS IsFiniteFloat(FLOATS x) { return (asuint(x) & 0x7F800000u) != 0x7F800000u; }

// e^x for x up to 80, within 0.62 |x| + 2 times 2^-23 of itself; where that is no normal number, 0 or
// a number as small. NaN for NaN, +inf for +inf.
FLOATS ExpUpToSome(FLOATS x) {
  FLOATS t = x * 1.44269504f;
  // Not with max and min, which lose NaN; nor may a compiler take these lines for them, to which
  // Microsoft's is bound (shader_options.h).
  t = t < -127.0f ? (FLOATS)-127.0f : t;
  t = t > 128.0f ? (FLOATS)128.0f : t;
  // n is t rounded, and n + 127 stands in the low bits: conversions to integers, which clamp, are made
  // one by one on software devices. Compilers that knew the zero would take n for t.
  FLOATS biased = t + 12583039.0f;
  FLOATS n = biased - asfloat(0x4B40007Fu + c.opaque_zero);
  FLOATS f = t - n;
  return exp2(f) * asfloat(asuint(biased) << 23);
}

// ln x, within 2 ulp, denormals included.
FLOATS Log(FLOATS x) {
  UINTS bits = asuint(x);
  UINTS mantissa = bits & 0x007FFFFFu;
  BOOLS denormal = (bits >> 23) == 0;
  UINTS shift = denormal ? 23 - firstbithigh(mantissa) : (UINTS)0;
  mantissa = (mantissa << shift) & 0x007FFFFFu;
  INTS exponent = denormal ? -126 - (INTS)shift : (INTS)(bits >> 23) - 127;
  FLOATS m = asfloat(mantissa | 0x3F800000u);
  BOOLS high = m > 1.41421356f;
  m = high ? m * 0.5f : m;
  exponent = high ? exponent + 1 : exponent;
  FLOATS f = m - 1.0f;
  FLOATS s = f / (2.0f + f);
  FLOATS z = s * s;
  FLOATS series = z * (0.66666669f + z * (0.4f + z * (0.28571430f + z * (0.22222222f + z * 0.18f))));
  FLOATS e = (FLOATS)exponent;
  // 2s + s * series, with f's own bits kept: log(1 + f) = f - (f - 2s) + s * series.
  FLOATS low = s * series - (f - 2.0f * s) + e * -2.12194440e-4f;
  FLOATS result = e * 0.693359375f + (f + low);
  // Numbers below zero are among those whose bits are not below infinity's.
  result = bits >= 0x7F800000u ? (FLOATS)FLOAT_NAN : result;
  result = bits == 0x7F800000u ? x : result;
  return (bits & 0x7FFFFFFFu) == 0 ? (FLOATS)-FLOAT_INFINITY : result;
}
