// Functions of FLOAT32, for HLSL and, with the types of kernels/operators/elementwise/, for C++: one
// text, so that devices agree. Hence only what both have: the operators, casts of constants, and
// Select instead of ?:, which vkd3d's compiler takes in exponential time where its condition or arms
// are large. What each language writes in its own way is defined before: Select, HasSign,
// AreNumbers, conversions, and Min and Max, of which a NaN wins and -0 is below +0. Keep(x) is x, and
// opaque to optimizers, which may otherwise contract and reorder operations. Polynomials are minimax
// fits of relative error. Errors in units in the last place are in the rows of
// element_wise_rows.inc, and tested.

#define FLOAT_SIGN 0x80000000u
#define FLOAT_INFINITY 0x7F800000u
#define INFINITE asfloat((UINTS)FLOAT_INFINITY)
#define NOT_A_NUMBER asfloat((UINTS)0x7FC00000u)

INLINE BOOLS IsNan(FLOATS x) { return (asuint(x) & ~FLOAT_SIGN) > (UINTS)FLOAT_INFINITY; }
INLINE FLOATS WithSign(FLOATS magnitude, FLOATS sign) {
  return asfloat((asuint(magnitude) & ~FLOAT_SIGN) | (asuint(sign) & FLOAT_SIGN));
}
INLINE FLOATS Abs(FLOATS x) { return asfloat(asuint(x) & ~FLOAT_SIGN); }
INLINE FLOATS Neg(FLOATS x) { return asfloat(asuint(x) ^ FLOAT_SIGN); }

// Comparisons are of integers in the order of the numbers, because devices may flush denormals. -0
// equals +0.
INLINE INTS NumberOrder(FLOATS x) {
  UINTS magnitude = asuint(x) & ~FLOAT_SIGN;
  return Select(HasSign(x), -asint(magnitude), asint(magnitude));
}
INLINE BOOLS Less(FLOATS a, FLOATS b) {
  return AreNumbers(a, b) && (NumberOrder(a) < NumberOrder(b));
}
INLINE BOOLS Equal(FLOATS a, FLOATS b) {
  return AreNumbers(a, b) && (NumberOrder(a) == NumberOrder(b));
}
INLINE BOOLS LessOrEqual(FLOATS a, FLOATS b) {
  return AreNumbers(a, b) && !(NumberOrder(b) < NumberOrder(a));
}
INLINE BOOLS IsTrue(FLOATS x) { return (asuint(x) & ~FLOAT_SIGN) != (UINTS)0u; }

INLINE FLOATS Sign(FLOATS x) {
  FLOATS one = WithSign((FLOATS)1.0f, x);
  return Select(IsNan(x), NOT_A_NUMBER, Select(IsTrue(x), one, (FLOATS)0.0f));
}

INLINE FLOATS Add(FLOATS a, FLOATS b) { return a + b; }
INLINE FLOATS Sub(FLOATS a, FLOATS b) { return a - b; }
INLINE FLOATS Mul(FLOATS a, FLOATS b) { return Keep(a * b); }
INLINE FLOATS Div(FLOATS a, FLOATS b) { return a / b; }
INLINE FLOATS Average(FLOATS a, FLOATS b) { return (a + b) * 0.5f; }
INLINE FLOATS Sqrt(FLOATS x) { return sqrt(x); }

INLINE FLOATS Floor(FLOATS x) {
  BOOLS tiny = asuint(x) - 0x80000001u < (UINTS)0x007FFFFFu;  // negative denormals
  return Select(tiny, (FLOATS)-1.0f, floor(x));
}
INLINE FLOATS Ceil(FLOATS x) {
  BOOLS tiny = asuint(x) - 1u < (UINTS)0x007FFFFFu;  // positive denormals
  return Select(tiny, (FLOATS)1.0f, WithSign(ceil(x), x));
}
// DML_ROUNDING_MODE: 0 half to even, 1 toward zero, 2 half away from zero.
INLINE FLOATS Round(FLOATS x, UINTS mode) {
  FLOATS whole = trunc(x);
  FLOATS away = whole + Select(abs(x - whole) < (FLOATS)0.5f, (FLOATS)0.0f,
                               WithSign((FLOATS)1.0f, x));
  FLOATS rounded = Select(mode == (UINTS)0u, round(x), Select(mode == (UINTS)1u, whole, away));
  return Select(IsNan(x), NOT_A_NUMBER, WithSign(rounded, x));
}
// DML_IS_INFINITY_MODE: 0 either, 1 positive, 2 negative.
INLINE BOOLS IsInfinity(FLOATS x, UINTS mode) {
  UINTS bits = asuint(x);
  BOOLS positive = bits == (UINTS)FLOAT_INFINITY;
  BOOLS negative = bits == (UINTS)(FLOAT_INFINITY | FLOAT_SIGN);
  return (positive && (mode != (UINTS)2u)) || (negative && (mode != (UINTS)1u));
}

// 12 bits of a number; the rest is exact.
INLINE FLOATS High(FLOATS x) { return asfloat(asuint(x) & 0xFFFFF000u); }
// a * b - product, exactly.
INLINE FLOATS ProductRest(FLOATS a, FLOATS b, FLOATS product) {
  FLOATS ah = High(a);
  FLOATS bh = High(b);
  FLOATS al = a - ah;
  FLOATS bl = b - bh;
  return ((ah * bh - product) + ah * bl + al * bh) + al * bl;
}

// The remainder, exact while the quotient is below 2^22.
INLINE FLOATS Remainder(FLOATS a, FLOATS b, FLOATS quotient) {
  FLOATS product = Mul(quotient, b);
  return (a - product) - ProductRest(quotient, b, product);
}
INLINE FLOATS ModTruncate(FLOATS a, FLOATS b) {
  FLOATS rest = Remainder(Abs(a), Abs(b), trunc(Abs(a / b)));
  rest = Select(Less(rest, (FLOATS)0.0f), rest + Abs(b), rest);
  rest = Select(Less(rest, Abs(b)), rest, rest - Abs(b));
  rest = Select(Abs(b) == INFINITE, Abs(a), rest);
  return Select(AreNumbers(a, b) && (Abs(a) < INFINITE), WithSign(rest, a), NOT_A_NUMBER);
}
INLINE FLOATS ModFloor(FLOATS a, FLOATS b) {
  FLOATS rest = ModTruncate(a, b);
  BOOLS differs = IsTrue(rest) && (HasSign(rest) != HasSign(b));
  return Select(differs, rest + b, Select(IsTrue(rest), rest, WithSign(rest, b)));
}

// p * 2^n, in two steps, so that neither factor overflows.
INLINE FLOATS Scale(FLOATS p, INTS n) {
  INTS half = n >> 1;
  FLOATS first = asfloat(asuint(half + 127) << 23);
  FLOATS second = asfloat(asuint(n - half + 127) << 23);
  return p * first * second;
}
// e^r - 1 - r, for |r| up to ln(2) / 2.
INLINE FLOATS ExpRest(FLOATS r) {
  FLOATS p = r * 1.98577050e-4f + 1.39336300e-3f;
  p = p * r + 8.33336078e-3f;
  p = p * r + 4.16664667e-2f;
  p = p * r + 1.66666672e-1f;
  p = p * r + 0.5f;
  return p * (r * r);
}
INLINE FLOATS ExpQuotient(FLOATS x) { return round(x * 1.44269504f); }
INLINE FLOATS ExpReduced(FLOATS x, FLOATS n) {
  return x - n * 0.693359375f - n * -2.12194440e-4f;
}
// e^x * 2^exponent
INLINE FLOATS ExpTimes(FLOATS x, INTS exponent) {
  FLOATS limited = min(max(x, (FLOATS)-104.0f), (FLOATS)90.0f);
  FLOATS n = ExpQuotient(limited);
  FLOATS r = ExpReduced(limited, n);
  FLOATS y = Scale(ExpRest(r) + r + 1.0f, ToInts(n) + exponent);
  return Select(IsNan(x), NOT_A_NUMBER, y);
}
INLINE FLOATS Exp(FLOATS x) { return ExpTimes(x, (INTS)0); }
// e^x - 1
INLINE FLOATS Expm1(FLOATS x) {
  FLOATS limited = min(max(x, (FLOATS)-20.0f), (FLOATS)80.0f);
  FLOATS n = ExpQuotient(limited);
  FLOATS r = ExpReduced(limited, n);
  FLOATS scale = asfloat(asuint(ToInts(n) + 127) << 23);
  FLOATS y = scale * (ExpRest(r) + r) + (scale - 1.0f);
  y = Select(IsTrue(x), y, x);
  return Select(Abs(x) < (FLOATS)80.0f, y, Exp(x) - 1.0f);
}

// The exponent and, in [sqrt(1/2), sqrt(2)), the fraction of a positive number.
INLINE FLOATS LogExponent(UINTS bits) {
  return ToFloats(asint(bits - 0x3F3504F3u) >> 23);
}
INLINE FLOATS LogFraction(UINTS bits) {
  UINTS exponent = asuint(asint(bits - 0x3F3504F3u) >> 23);
  return asfloat(bits - (exponent << 23)) - 1.0f;
}
// The bits of a number, or for a denormal those of the number * 2^149.
INLINE UINTS LogBits(UINTS bits) {
  BOOLS tiny = bits - 1u < (UINTS)0x007FFFFFu;
  return Select(tiny, asuint(ToFloats(asint(bits))), bits);
}
INLINE FLOATS LogScale(UINTS bits) {
  return Select(bits - 1u < (UINTS)0x007FFFFFu, (FLOATS)-149.0f, (FLOATS)0.0f);
}
// (log(1 + f) - f + f^2 / 2) / f^3
INLINE FLOATS LogRest(FLOATS f) {
  FLOATS p = f * 7.03540295e-2f + -1.15134560e-1f;
  p = p * f + 1.16773129e-1f;
  p = p * f + -1.24203265e-1f;
  p = p * f + 1.42493099e-1f;
  p = p * f + -1.66680485e-1f;
  p = p * f + 2.00007156e-1f;
  p = p * f + -2.49999940e-1f;
  return p * f + 3.33333313e-1f;
}
INLINE FLOATS LogSpecial(FLOATS x, FLOATS y) {
  UINTS bits = asuint(x);
  y = Select(bits == (UINTS)FLOAT_INFINITY, x, y);
  y = Select(IsTrue(x), y, Neg(INFINITE));
  return Select((bits > (UINTS)FLOAT_INFINITY) && IsTrue(x), NOT_A_NUMBER, y);
}
INLINE FLOATS Log(FLOATS x) {
  UINTS bits = LogBits(asuint(x));
  FLOATS e = LogExponent(bits) + LogScale(asuint(x));
  FLOATS f = LogFraction(bits);
  FLOATS z = f * f;
  FLOATS y = LogRest(f) * f * z + e * -2.12194440e-4f - z * 0.5f;
  return LogSpecial(x, f + y + e * 0.693359375f);
}
// log(1 + x): the error of 1 + x cancels in the quotient.
INLINE FLOATS Log1p(FLOATS x) {
  FLOATS u = Keep(1.0f + x);
  FLOATS y = Log(u) * (x / (u - 1.0f));
  y = Select(u == (FLOATS)1.0f, x, y);
  y = Select(u == INFINITE, u, y);
  return Select(u == (FLOATS)0.0f, Neg(INFINITE), y);
}

// Accurate for |x| up to 8192, where the parts of n * pi / 2 are exact.
INLINE FLOATS TrigQuotient(FLOATS x) { return round(x * 0.636619772f); }
INLINE FLOATS TrigReduced(FLOATS x, FLOATS n) {
  FLOATS r = x - n * 1.5703125f - n * 4.837513e-04f - n * 7.5495336e-08f - n * 2.563344e-12f;
  return min(max(r, (FLOATS)-0.8f), (FLOATS)0.8f);
}
INLINE FLOATS SinPart(FLOATS r) {
  FLOATS z = r * r;
  return ((z * -1.95826462e-4f + 8.33272375e-3f) * z + -1.66666642e-1f) * z * r + r;
}
INLINE FLOATS CosPart(FLOATS r) {
  FLOATS z = r * r;
  return ((z * 2.45427964e-5f + -1.38882792e-3f) * z + 4.16666642e-2f) * z * z - z * 0.5f + 1.0f;
}
// The sine of r + quadrant * pi / 2.
INLINE FLOATS SinOf(FLOATS x, FLOATS r, INTS quadrant) {
  FLOATS y = Select((quadrant & (INTS)1) == (INTS)0, SinPart(r), CosPart(r));
  y = asfloat(asuint(y) ^ (asuint(quadrant & (INTS)2) << 30));
  return Select(Abs(x) < INFINITE, y, NOT_A_NUMBER);
}
INLINE FLOATS Sin(FLOATS x) {
  FLOATS n = TrigQuotient(x);
  FLOATS y = SinOf(x, TrigReduced(x, n), ToInts(n));
  return Select(IsTrue(x), y, x);
}
INLINE FLOATS Cos(FLOATS x) {
  FLOATS n = TrigQuotient(x);
  return SinOf(x, TrigReduced(x, n), ToInts(n) + 1);
}
INLINE FLOATS Tan(FLOATS x) {
  FLOATS n = TrigQuotient(x);
  FLOATS r = TrigReduced(x, n);
  FLOATS z = r * r;
  FLOATS p = z * 8.40811897e-3f + 4.87940433e-3f;
  p = p * z + 2.32661963e-2f;
  p = p * z + 5.37545606e-2f;
  p = p * z + 1.33345038e-1f;
  p = p * z + 3.33333224e-1f;
  FLOATS t = p * z * r + r;
  FLOATS y = Select((ToInts(n) & (INTS)1) == (INTS)0, t, -1.0f / t);
  y = Select(IsTrue(x), y, x);
  return Select(Abs(x) < INFINITE, y, NOT_A_NUMBER);
}

#define HALF_PI 1.57079633f
// asin(s) for s up to 1/2, where z is s^2.
INLINE FLOATS AsinPart(FLOATS s, FLOATS z) {
  FLOATS p = z * 3.81925590e-2f + 2.65024491e-2f;
  p = p * z + 4.50091511e-2f;
  p = p * z + 7.49881938e-2f;
  p = p * z + 1.66666731e-1f;
  return p * z * s + s;
}
INLINE FLOATS Asin(FLOATS x) {
  FLOATS a = Abs(x);
  BOOLS large = a > (FLOATS)0.5f;
  FLOATS half = max(0.5f - a * 0.5f, (FLOATS)0.0f);
  FLOATS z = Select(large, half, a * a);
  FLOATS p = AsinPart(Select(large, sqrt(half), a), z);
  FLOATS y = WithSign(Select(large, (HALF_PI - p) - p, p), x);
  return Select(a <= (FLOATS)1.0f, y, NOT_A_NUMBER);
}
INLINE FLOATS Acos(FLOATS x) {
  FLOATS a = Abs(x);
  BOOLS large = a > (FLOATS)0.5f;
  FLOATS half = max(0.5f - a * 0.5f, (FLOATS)0.0f);
  FLOATS s = Select(large, sqrt(half), a);
  FLOATS p = AsinPart(s, Select(large, half, a * a));
  FLOATS near_one = p + p;
  FLOATS y = Select(large, near_one, HALF_PI - WithSign(p, x) - 4.37113883e-8f);
  y = Select(large && (x < (FLOATS)0.0f), 2.0f * HALF_PI - near_one - 8.74227766e-8f, y);
  return Select(a <= (FLOATS)1.0f, y, NOT_A_NUMBER);
}
// For a of at least 0.
INLINE FLOATS AtanPart(FLOATS a) {
  BOOLS large = a > (FLOATS)2.41421356f;
  BOOLS middle = a > (FLOATS)0.414213562f;
  FLOATS t = Select(large, -1.0f / a, Select(middle, (a - 1.0f) / (a + 1.0f), a));
  FLOATS base = Select(large, (FLOATS)HALF_PI, Select(middle, (FLOATS)(0.5f * HALF_PI), (FLOATS)0.0f));
  FLOATS z = t * t;
  FLOATS p = z * -6.45668283e-2f + 1.07454561e-1f;
  p = p * z + -1.42641544e-1f;
  p = p * z + 1.99995488e-1f;
  p = p * z + -3.33333313e-1f;
  return base + (p * z * t + t);
}
INLINE FLOATS Atan(FLOATS x) {
  return Select(IsNan(x), NOT_A_NUMBER, WithSign(AtanPart(Abs(x)), x));
}
INLINE FLOATS Atan2(FLOATS y, FLOATS x) {
  FLOATS ay = Abs(y);
  FLOATS ax = Abs(x);
  FLOATS low = min(ax, ay);
  FLOATS high = max(ax, ay);
  FLOATS ratio = Select(IsTrue(high), low / high, (FLOATS)0.0f);
  ratio = Select(low == INFINITE, (FLOATS)1.0f, ratio);
  FLOATS angle = AtanPart(ratio);
  angle = Select(ay > ax, HALF_PI - angle, angle);
  angle = Select(HasSign(x), 2.0f * HALF_PI - angle, angle);
  return Select(AreNumbers(x, y), WithSign(angle, y), NOT_A_NUMBER);
}

INLINE FLOATS Sinh(FLOATS x) {
  FLOATS a = Abs(x);
  FLOATS z = a * a;
  FLOATS small = ((z * 2.02568510e-4f + 8.33178405e-3f) * z + 1.66666746e-1f) * z * a + a;
  FLOATS e = ExpTimes(a, (INTS)-1);
  FLOATS y = Select(a < (FLOATS)1.0f, small, e - 0.25f / e);
  return Select(IsNan(x), NOT_A_NUMBER, WithSign(y, x));
}
INLINE FLOATS Cosh(FLOATS x) {
  FLOATS e = ExpTimes(Abs(x), (INTS)-1);
  return e + 0.25f / e;
}
INLINE FLOATS Tanh(FLOATS x) {
  FLOATS a = Abs(x);
  FLOATS z = a * a;
  FLOATS p = z * -6.09126687e-3f + 2.09936909e-2f;
  p = p * z + -5.38502671e-2f;
  p = p * z + 1.33327663e-1f;
  p = p * z + -3.33333284e-1f;
  FLOATS y = Select(a < (FLOATS)0.625f, p * z * a + a, 1.0f - 2.0f / (Exp(a + a) + 1.0f));
  return Select(IsNan(x), NOT_A_NUMBER, WithSign(y, x));
}
INLINE FLOATS Asinh(FLOATS x) {
  FLOATS a = Abs(x);
  FLOATS small = Log1p(a + a * a / (1.0f + sqrt(a * a + 1.0f)));
  FLOATS y = Select(a < (FLOATS)1.0e9f, small, Log(a) + 0.693147181f);
  return Select(IsNan(x), NOT_A_NUMBER, WithSign(y, x));
}
INLINE FLOATS Acosh(FLOATS x) {
  FLOATS t = x - 1.0f;
  FLOATS small = Log1p(t + sqrt(max(t + t + t * t, (FLOATS)0.0f)));
  FLOATS y = Select(x < (FLOATS)1.0e9f, small, Log(x) + 0.693147181f);
  return Select(x >= (FLOATS)1.0f, y, NOT_A_NUMBER);
}
INLINE FLOATS Atanh(FLOATS x) {
  FLOATS a = Abs(x);
  FLOATS y = 0.5f * Log1p((a + a) / (1.0f - a));
  return Select(a <= (FLOATS)1.0f, WithSign(y, x), NOT_A_NUMBER);
}

// e^(-scale * t^2); t^2 is split, because its error is multiplied by itself.
INLINE FLOATS ExpOfSquare(FLOATS t, FLOATS scale) {
  FLOATS high = High(min(t, (FLOATS)16.0f));
  FLOATS low = min(t, (FLOATS)16.0f) - high;
  return Exp(-scale * (high * high)) * Exp(-scale * (low * (low + high + high)));
}
// (1 - erf(t)) * e^(t^2) for t of at least 0.
INLINE FLOATS ErfcPart(FLOATS t) {
  t = min(t, (FLOATS)10.5f);
  FLOATS v = (t - 2.0f) / (t + 2.0f);
  FLOATS p = v * -2.39484234e-5f + -2.65472976e-4f;
  p = p * v + -3.63030791e-4f;
  p = p * v + 1.52220251e-3f;
  p = p * v + 3.21769947e-3f;
  p = p * v + -1.07516046e-2f;
  p = p * v + -1.82179809e-2f;
  p = p * v + 1.39735773e-1f;
  p = p * v + -3.43580455e-1f;
  p = p * v + 5.10791361e-1f;
  return p / (1.0f + t * 0.5f);
}
INLINE FLOATS Erf(FLOATS x) {
  FLOATS a = Abs(x);
  FLOATS z = a * a;
  FLOATS p = z * -5.99379360e-4f + 4.99079656e-3f;
  p = p * z + -2.67616212e-2f;
  p = p * z + 1.12815201e-1f;
  p = p * z + -3.76124382e-1f;
  p = p * z + 1.28379136e-1f;
  FLOATS y = Select(a < (FLOATS)0.93f, p * a + a, 1.0f - ErfcPart(a) * ExpOfSquare(a, (FLOATS)1.0f));
  return Select(IsNan(x), NOT_A_NUMBER, WithSign(y, x));
}
// The normal distribution's probability below x.
INLINE FLOATS NormalProbability(FLOATS x) {
  FLOATS tail = 0.5f * ErfcPart(Abs(x) * 0.707106781f) * ExpOfSquare(Abs(x), (FLOATS)0.5f);
  FLOATS y = Select(x < (FLOATS)0.0f, tail, 1.0f - tail);
  return Select(IsNan(x), NOT_A_NUMBER, y);
}

// x^y: the logarithm has a second word, because its error is multiplied by y * log(x).
INLINE FLOATS PositivePow(FLOATS x, FLOATS y) {
  UINTS bits = LogBits(asuint(x));
  FLOATS e = LogExponent(bits) + LogScale(asuint(x));
  FLOATS f = LogFraction(bits);
  FLOATS z = f * f;
  FLOATS z_rest = ProductRest(f, f, z);
  FLOATS half = z * -0.5f;
  FLOATS high = Keep(f + half);  // |half| < |f|
  FLOATS low = (half - (high - f)) - 0.5f * z_rest + LogRest(f) * f * z + e * -2.12194440e-4f;
  FLOATS whole = e * 0.693359375f;
  FLOATS sum = Keep(whole + high);
  FLOATS part = Keep(sum - whole);
  low = low + ((whole - (sum - part)) + (high - part));
  high = Keep(sum + low);
  low = low - (high - sum);
  FLOATS product = y * high;
  FLOATS rest = ProductRest(y, high, product) + y * low;
  BOOLS finite = (product > (FLOATS)-150.0f) && (product < (FLOATS)150.0f);
  rest = Select(finite, rest, (FLOATS)0.0f);
  FLOATS power = Exp(product);
  return Select(Abs(power) < INFINITE, power + power * rest, power);
}
INLINE FLOATS Pow(FLOATS x, FLOATS y) {
  FLOATS a = Abs(x);
  FLOATS power = PositivePow(a, y);
  BOOLS grows = !HasSign(y);
  BOOLS above = a > (FLOATS)1.0f;
  FLOATS zero = (FLOATS)0.0f;
  power = Select(IsTrue(x), power, Select(grows, zero, INFINITE));
  power = Select(a == INFINITE, Select(grows, INFINITE, zero), power);
  power = Select(Abs(y) == INFINITE, Select(above == grows, INFINITE, zero), power);
  power = Select((a == (FLOATS)1.0f) && !IsNan(y), (FLOATS)1.0f, power);
  BOOLS whole = (trunc(y) == y);
  BOOLS odd = whole && (Abs(y) < (FLOATS)16777216.0f) &&
              ((ToInts(min(Abs(y), (FLOATS)16777216.0f)) & (INTS)1) == (INTS)1);
  BOOLS negative = HasSign(x);
  power = Select(negative && odd, Neg(power), power);
  power = Select(negative && IsTrue(x) && !(whole || (Abs(y) == INFINITE)) && (a < INFINITE),
                 NOT_A_NUMBER, power);
  power = Select(AreNumbers(x, y), power, NOT_A_NUMBER);
  return Select(IsTrue(y) && !(x == (FLOATS)1.0f), power, (FLOATS)1.0f);
}

// Of a half in the low 16 bits; exact.
INLINE FLOATS FloatOfHalf(UINTS bits) {
  UINTS magnitude = (bits & 0x7FFFu) << 13;
  // 2^-14 + magnitude - 2^-14, for denormals.
  FLOATS tiny = asfloat(magnitude + 0x38800000u) - asfloat((UINTS)0x38800000u);
  UINTS finite = magnitude + 0x38000000u;
  UINTS special = magnitude + 0x70000000u;
  UINTS value = Select(magnitude < (UINTS)0x0F800000u, finite, special);
  value = Select(magnitude < (UINTS)0x00800000u, asuint(tiny), value);
  return asfloat(value | ((bits & 0x8000u) << 16));
}
// The nearest half, ties to even, in the low 16 bits.
INLINE UINTS HalfOfFloat(FLOATS x) {
  UINTS bits = asuint(x);
  UINTS magnitude = bits & ~FLOAT_SIGN;
  // Below 2^-14 a multiple of 2^-24, the last bit of 0.5.
  UINTS tiny = asuint(asfloat(magnitude) + 0.5f) - 0x3F000000u;
  UINTS half = (magnitude + 0xC8000FFFu + ((magnitude >> 13) & 1u)) >> 13;
  half = Select(magnitude < (UINTS)0x38800000u, tiny, half & 0xFFFFu);
  half = Select(magnitude < (UINTS)0x477FF000u, half, (UINTS)0x7C00u);
  half = Select(magnitude > (UINTS)FLOAT_INFINITY, (UINTS)0x7E00u, half);
  return half | ((bits >> 16) & 0x8000u);
}
INLINE FLOATS RoundToHalf(FLOATS x) { return FloatOfHalf(HalfOfFloat(x)); }
