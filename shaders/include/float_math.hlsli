// Logarithms and exponentials. Log has one return, at the end: after an earlier one FXC reports an
// uninitialized result (X4000).
#include "include/elements.hlsli"
#include "include/half.hlsli"

#define FLOAT_INFINITY asfloat(0x7F800000u)
#define FLOAT_LARGEST asfloat(0x7F7FFFFFu)
#define FLOAT_NAN asfloat(0x7FC00000u)

BOOLS IsFiniteFloat(FLOATS x) { return (asuint(x) & 0x7F800000u) != 0x7F800000u; }

// e^x by the driver's exp2, whose relative error Direct3D limits to 2^-21; 0.62 |x| * 2^-23 comes
// from the multiplication. Results that are not normal numbers are 0 or as small. NaN for NaN, +inf
// for +inf.
FLOATS Exp(FLOATS x) { return exp2(x * 1.44269504f); }

// ln x, within 2 ulp, denormals included. From additions, multiplications and integer operations,
// because the log2 of some drivers has errors of 2^-16.
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
  FLOATS series =
      z * (0.66666669f + z * (0.4f + z * (0.28571430f + z * (0.22222222f + z * 0.18f))));
  FLOATS e = (FLOATS)exponent;
  // 2s + s * series, with f's own bits kept: log(1 + f) = f - (f - 2s) + s * series.
  FLOATS low = s * series - (f - 2.0f * s) + e * -2.12194440e-4f;
  FLOATS result = e * 0.693359375f + (f + low);
  // This includes negative numbers: their bits are above infinity's.
  result = bits >= 0x7F800000u ? (FLOATS)FLOAT_NAN : result;
  result = bits == 0x7F800000u ? x : result;
  return (bits & 0x7FFFFFFFu) == 0 ? (FLOATS)-FLOAT_INFINITY : result;
}
