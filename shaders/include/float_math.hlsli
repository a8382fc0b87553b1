// Float functions made of additions, multiplications and integer steps, so that their accuracy is
// ours and not the driver's: some drivers' exp2 and log2 are good to 2^-16 only. One return each, at
// the end: of an earlier one FXC says that it leaves the result uninitialised (X4000).
#ifndef OPMILL_FLOAT_MATH_HLSLI_
#define OPMILL_FLOAT_MATH_HLSLI_

#define FLOAT_INFINITY asfloat(0x7F800000u)
#define FLOAT_LARGEST asfloat(0x7F7FFFFFu)
#define FLOAT_NAN asfloat(0x7FC00000u)

bool IsFiniteFloat(float x) { return (asuint(x) & 0x7F800000u) != 0x7F800000u; }
bool IsNanFloat(float x) { return (asuint(x) & 0x7FFFFFFFu) > 0x7F800000u; }

// e^x for x <= 0, within |x| / 2 + 2 ulp; 0 below the smallest normal number; NaN for NaN.
float ExpNotAbove(float x) {
  float t = x * 1.44269504f;
  float n = round(t);
  float f = t - n;
  float p = 1.326472731e-03f;
  p = p * f + 9.671513923e-03f;
  p = p * f + 5.550733581e-02f;
  p = p * f + 2.402224243e-01f;
  p = p * f + 6.931470037e-01f;
  p = p * f + 1.0f;
  // 2^n, its exponent read off the low bits of n + 1.5 * 2^23: conversions to integers, which clamp,
  // are made one by one on software devices.
  float scale = asfloat((asuint(n + 12582912.0f) << 23) + 0x3F800000u);
  return t < -126.0f ? 0.0f : p * scale;
}

// ln x, within 2 ulp, denormals included.
float Log(float x) {
  uint bits = asuint(x);
  int exponent = (int)(bits >> 23) - 127;
  uint mantissa = bits & 0x007FFFFFu;
  if ((bits >> 23) == 0) {
    uint shift = 23 - firstbithigh(mantissa);
    mantissa = (mantissa << shift) & 0x007FFFFFu;
    exponent = -126 - (int)shift;
  }
  float m = asfloat(mantissa | 0x3F800000u);
  if (m > 1.41421356f) {
    m *= 0.5f;
    exponent += 1;
  }
  float f = m - 1.0f;
  float s = f / (2.0f + f);
  float z = s * s;
  float series = z * (0.66666669f + z * (0.4f + z * (0.28571430f + z * (0.22222222f + z * 0.18f))));
  float e = (float)exponent;
  // 2s + s * series, with f's own bits kept: log(1 + f) = f - (f - 2s) + s * series.
  float low = s * series - (f - 2.0f * s) + e * -2.12194440e-4f;
  float result = e * 0.693359375f + (f + low);
  if (bits >= 0x7F800000u) result = bits == 0x7F800000u || IsNanFloat(x) ? x : FLOAT_NAN;
  if ((bits & 0x7FFFFFFFu) == 0) result = -FLOAT_INFINITY;
  return result;
}

// The nearest half, ties to even, in the low 16 bits: f16tof32's inverse without a driver's rounding.
uint HalfBits(float x) {
  uint bits = asuint(x);
  uint sign = (bits >> 16) & 0x8000u;
  uint magnitude = bits & 0x7FFFFFFFu;
  uint half;
  if (magnitude < 0x38800000u) {
    // Below 2^-14: a multiple of 2^-24.
    uint shift = min(126u - (magnitude >> 23), 31u);
    uint mantissa = (magnitude & 0x007FFFFFu) | 0x00800000u;
    half = mantissa >> shift;
    uint rest = mantissa & ((1u << shift) - 1u);
    uint tie = 1u << (shift - 1u);
    if (rest > tie || (rest == tie && (half & 1u) != 0)) half += 1u;
  } else {
    uint rebased = magnitude - 0x38000000u;
    half = rebased >> 13;
    uint rest = rebased & 0x1FFFu;
    if (rest > 0x1000u || (rest == 0x1000u && (half & 1u) != 0)) half += 1u;
  }
  if (magnitude >= 0x477FF000u) half = 0x7C00u;  // 65520 and more round to infinity
  if (magnitude > 0x7F800000u) half = 0x7E00u;
  return sign | half;
}

#endif  // OPMILL_FLOAT_MATH_HLSLI_
