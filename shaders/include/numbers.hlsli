// The vocabulary of element-wise expressions for integers, and casts. A value is WIDTH elements: FLOATS,
// INTS and UINTS for types of up to 32 bits, LONGS and ULONGS for 64 bits. functions.hlsli has the
// same for FLOATS. Division by zero gives 0.

struct LONGS {
  UINTS low;
  INTS high;  // vkd3d's compiler does not distinguish structs with equal members
};
struct ULONGS {
  UINTS low;
  UINTS high;
};

// By masks, in linear time for vkd3d's compiler: functions.hlsli.
UINTS Select(BOOLS c, UINTS a, UINTS b) {
  UINTS mask = 0u - (UINTS)c;
  return (a & mask) | (b & ~mask);
}
INTS Select(BOOLS c, INTS a, INTS b) { return asint(Select(c, asuint(a), asuint(b))); }
FLOATS Select(BOOLS c, FLOATS a, FLOATS b) { return asfloat(Select(c, asuint(a), asuint(b))); }

// Not asint(x) < 0, which vkd3d's compiler takes for a comparison of unsigned numbers.
BOOLS HasSign(FLOATS x) { return (asuint(x) & 0x80000000u) != 0u; }
INTS TotalOrder(FLOATS x) {
  UINTS bits = asuint(x);
  return asint(Select(HasSign(x), bits ^ 0x7FFFFFFFu, bits));
}
BOOLS AreNumbers(FLOATS a, FLOATS b) {
  UINTS larger = max(asuint(a) & 0x7FFFFFFFu, asuint(b) & 0x7FFFFFFFu);
  return larger <= 0x7F800000u;
}
FLOATS Min(FLOATS a, FLOATS b) {
  FLOATS lower = Select(TotalOrder(b) < TotalOrder(a), b, a);
  return Select(AreNumbers(a, b), lower, asfloat((UINTS)0x7FC00000u));
}
FLOATS Max(FLOATS a, FLOATS b) {
  FLOATS higher = Select(TotalOrder(a) < TotalOrder(b), b, a);
  return Select(AreNumbers(a, b), higher, asfloat((UINTS)0x7FC00000u));
}

BOOLS Less(INTS a, INTS b) { return a < b; }
BOOLS Less(UINTS a, UINTS b) { return a < b; }
BOOLS IsTrue(INTS a) { return a != 0; }
BOOLS IsTrue(UINTS a) { return a != 0u; }

INTS Abs(INTS a) { return asint(Select(a < 0, 0u - asuint(a), asuint(a))); }
INTS Neg(INTS a) { return asint(0u - asuint(a)); }
UINTS Sign(UINTS a) { return min(a, (UINTS)1u); }
INTS Sign(INTS a) { return Select(a < 0, (INTS)-1, Select(a == 0, (INTS)0, (INTS)1)); }
INTS Average(INTS a, INTS b) {
  INTS below = (a & b) + ((a ^ b) >> 1);
  return below + Select(below < 0, (a ^ b) & 1, (INTS)0);
}
UINTS Average(UINTS a, UINTS b) { return (a & b) + ((a ^ b) >> 1); }

UINTS Quotient(UINTS a, UINTS b) {
  UINTS divisor = max(b, (UINTS)1u);
  return Select(b == 0u, (UINTS)0u, a / divisor);
}
UINTS Div(UINTS a, UINTS b) { return Quotient(a, b); }
UINTS ModTruncate(UINTS a, UINTS b) { return Select(b == 0u, (UINTS)0u, a - Quotient(a, b) * b); }
UINTS ModFloor(UINTS a, UINTS b) { return ModTruncate(a, b); }
INTS Div(INTS a, INTS b) {
  UINTS q = Quotient(asuint(Abs(a)), asuint(Abs(b)));
  return asint(Select((a ^ b) < 0, 0u - q, q));
}
INTS ModTruncate(INTS a, INTS b) {
  UINTS r = ModTruncate(asuint(Abs(a)), asuint(Abs(b)));
  return asint(Select(a < 0, 0u - r, r));
}
INTS ModFloor(INTS a, INTS b) {
  INTS r = ModTruncate(a, b);
  return r + Select((r != 0) && ((r ^ b) < 0), b, (INTS)0);
}

#define NARROW_FUNCTIONS(T)                                            \
  BOOLS Equal(T a, T b) { return a == b; }                             \
  BOOLS LessOrEqual(T a, T b) { return a <= b; }                       \
  T Min(T a, T b) { return min(a, b); }                                \
  T Max(T a, T b) { return max(a, b); }                                \
  T Add(T a, T b) { return a + b; }                                    \
  T Sub(T a, T b) { return a - b; }                                    \
  T Mul(T a, T b) { return a * b; }
NARROW_FUNCTIONS(INTS)
NARROW_FUNCTIONS(UINTS)

UINTS BitNot(UINTS a) { return ~a; }
UINTS BitAnd(UINTS a, UINTS b) { return a & b; }
UINTS BitOr(UINTS a, UINTS b) { return a | b; }
UINTS BitXor(UINTS a, UINTS b) { return a ^ b; }
UINTS BitCount(UINTS a) { return countbits(a); }
// Shifts by the width and more give 0.
UINTS ShiftLeft(UINTS a, UINTS b) { return Select(b < 32u, a << (b & 31u), (UINTS)0u); }
UINTS ShiftRight(UINTS a, UINTS b) { return Select(b < 32u, a >> (b & 31u), (UINTS)0u); }

// 64 bits.
ULONGS ULongs(UINTS low, UINTS high) {
  ULONGS r;
  r.low = low;
  r.high = high;
  return r;
}
LONGS Longs(UINTS low, UINTS high) {
  LONGS r;
  r.low = low;
  r.high = asint(high);
  return r;
}
ULONGS ToUnsigned(LONGS a) { return ULongs(a.low, asuint(a.high)); }
LONGS ToSigned(ULONGS a) { return Longs(a.low, a.high); }
ULONGS Select(BOOLS c, ULONGS a, ULONGS b) {
  return ULongs(Select(c, a.low, b.low), Select(c, a.high, b.high));
}
LONGS Select(BOOLS c, LONGS a, LONGS b) {
  return ToSigned(Select(c, ToUnsigned(a), ToUnsigned(b)));
}
ULONGS Add(ULONGS a, ULONGS b) {
  UINTS low = a.low + b.low;
  return ULongs(low, a.high + b.high + Select(low < a.low, (UINTS)1u, (UINTS)0u));
}
ULONGS Neg(ULONGS a) {
  return ULongs(0u - a.low, ~a.high + Select(a.low == 0u, (UINTS)1u, (UINTS)0u));
}
ULONGS Sub(ULONGS a, ULONGS b) {
  return ULongs(a.low - b.low, a.high - b.high - Select(a.low < b.low, (UINTS)1u, (UINTS)0u));
}
UINTS ProductHigh(UINTS a, UINTS b) {
  UINTS al = a & 0xFFFFu;
  UINTS ah = a >> 16;
  UINTS bl = b & 0xFFFFu;
  UINTS bh = b >> 16;
  UINTS middle = ah * bl + ((al * bl) >> 16);
  UINTS other = al * bh + (middle & 0xFFFFu);
  return ah * bh + (middle >> 16) + (other >> 16);
}
ULONGS Mul(ULONGS a, ULONGS b) {
  return ULongs(a.low * b.low, ProductHigh(a.low, b.low) + a.low * b.high + a.high * b.low);
}
BOOLS Less(ULONGS a, ULONGS b) {
  return (a.high < b.high) || ((a.high == b.high) && (a.low < b.low));
}
BOOLS Less(LONGS a, LONGS b) {
  return (a.high < b.high) || ((a.high == b.high) && (a.low < b.low));
}
BOOLS IsNegative(LONGS a) { return a.high < 0; }
LONGS Neg(LONGS a) { return ToSigned(Neg(ToUnsigned(a))); }
LONGS Abs(LONGS a) { return Select(IsNegative(a), Neg(a), a); }

// Of the quotient (xy) and the rest (zw), bit by bit.
void DivideLongs(ULONGS a, ULONGS b, out ULONGS quotient, out ULONGS rest) {
  quotient = ULongs((UINTS)0u, (UINTS)0u);
  rest = quotient;
  [loop] for (uint bit = 0; bit < 64; ++bit) {
    UINTS carry = rest.high >> 31;
    rest = ULongs((rest.low << 1) | (a.high >> 31), (rest.high << 1) | (rest.low >> 31));
    a = ULongs(a.low << 1, (a.high << 1) | (a.low >> 31));
    BOOLS fits = (carry != 0u) || !Less(rest, b);
    rest = Select(fits, Sub(rest, b), rest);
    quotient = ULongs((quotient.low << 1) | Select(fits, (UINTS)1u, (UINTS)0u),
                      (quotient.high << 1) | (quotient.low >> 31));
  }
  BOOLS nothing = (b.low | b.high) == 0u;
  quotient = Select(nothing, ULongs((UINTS)0u, (UINTS)0u), quotient);
  rest = Select(nothing, ULongs((UINTS)0u, (UINTS)0u), rest);
}
ULONGS Div(ULONGS a, ULONGS b) {
  ULONGS quotient;
  ULONGS rest;
  DivideLongs(a, b, quotient, rest);
  return quotient;
}
ULONGS ModTruncate(ULONGS a, ULONGS b) {
  ULONGS quotient;
  ULONGS rest;
  DivideLongs(a, b, quotient, rest);
  return rest;
}
ULONGS ModFloor(ULONGS a, ULONGS b) { return ModTruncate(a, b); }
LONGS Div(LONGS a, LONGS b) {
  LONGS q = ToSigned(Div(ToUnsigned(Abs(a)), ToUnsigned(Abs(b))));
  return Select((a.high ^ b.high) < 0, Neg(q), q);
}
LONGS ModTruncate(LONGS a, LONGS b) {
  LONGS r = ToSigned(ModTruncate(ToUnsigned(Abs(a)), ToUnsigned(Abs(b))));
  return Select(IsNegative(a), Neg(r), r);
}
LONGS Add(LONGS a, LONGS b) { return ToSigned(Add(ToUnsigned(a), ToUnsigned(b))); }
LONGS Sub(LONGS a, LONGS b) { return ToSigned(Sub(ToUnsigned(a), ToUnsigned(b))); }
LONGS Mul(LONGS a, LONGS b) { return ToSigned(Mul(ToUnsigned(a), ToUnsigned(b))); }
LONGS ModFloor(LONGS a, LONGS b) {
  LONGS r = ModTruncate(a, b);
  BOOLS differs = ((r.low | asuint(r.high)) != 0u) && ((r.high ^ b.high) < 0);
  return Select(differs, Add(r, b), r);
}
ULONGS Sign(ULONGS a) {
  return ULongs(Select((a.low | a.high) == 0u, (UINTS)0u, (UINTS)1u), (UINTS)0u);
}
LONGS Sign(LONGS a) {
  LONGS one = Longs(Select((a.low | asuint(a.high)) == 0u, (UINTS)0u, (UINTS)1u), (UINTS)0u);
  return Select(IsNegative(a), Longs((UINTS)0xFFFFFFFFu, (UINTS)0xFFFFFFFFu), one);
}

#define WIDE_FUNCTIONS(T)                                                        \
  BOOLS Equal(T a, T b) { return (a.low == b.low) && (a.high == b.high); }       \
  BOOLS LessOrEqual(T a, T b) { return !Less(b, a); }                            \
  BOOLS IsTrue(T a) { return (a.low | asuint(a.high)) != 0u; }                           \
  T Min(T a, T b) { return Select(Less(b, a), b, a); }                           \
  T Max(T a, T b) { return Select(Less(a, b), b, a); }
WIDE_FUNCTIONS(LONGS)
WIDE_FUNCTIONS(ULONGS)

ULONGS BitNot(ULONGS a) { return ULongs(~a.low, ~a.high); }
ULONGS BitAnd(ULONGS a, ULONGS b) { return ULongs(a.low & b.low, a.high & b.high); }
ULONGS BitOr(ULONGS a, ULONGS b) { return ULongs(a.low | b.low, a.high | b.high); }
ULONGS BitXor(ULONGS a, ULONGS b) { return ULongs(a.low ^ b.low, a.high ^ b.high); }
UINTS BitCount(ULONGS a) { return countbits(a.low) + countbits(a.high); }
ULONGS ShiftLeft(ULONGS a, ULONGS b) {
  UINTS n = Select(b.high == 0u, b.low, (UINTS)64u);
  UINTS across = ShiftRight(a.low, 32u - n);
  UINTS high = Select(n < 32u, ShiftLeft(a.high, n) | across, ShiftLeft(a.low, n - 32u));
  return ULongs(ShiftLeft(a.low, n), high);
}
ULONGS ShiftRight(ULONGS a, ULONGS b) {
  UINTS n = Select(b.high == 0u, b.low, (UINTS)64u);
  UINTS across = ShiftLeft(a.high, 32u - n);
  UINTS low = Select(n < 32u, ShiftRight(a.low, n) | across, ShiftRight(a.high, n - 32u));
  return ULongs(low, ShiftRight(a.high, n));
}

// The narrow types within a word.
INTS SignExtend8(INTS a) { return (a << 24) >> 24; }
INTS SignExtend16(INTS a) { return (a << 16) >> 16; }

// Casts. From floats: toward zero, within [low, high], and 0 for NaN.
INTS ToInts(FLOATS x) { return (INTS)x; }
FLOATS ToFloats(INTS x) { return (FLOATS)x; }
FLOATS ToFloats(UINTS x) {
  // In two exact halves, so that the sum is rounded once.
  return (FLOATS)(x >> 16) * 65536.0f + (FLOATS)(x & 0xFFFFu);
}
FLOATS LongMagnitude(ULONGS a) {
  // The top 32 bits, the last of which also stands for those below, and their exponent.
  UINTS shift = Select(a.high == 0u, (UINTS)0u, firstbithigh(a.high | 1u) + 1u);
  ULONGS top = ShiftRight(a, ULongs(shift, (UINTS)0u));
  ULONGS below = ShiftLeft(a, ULongs(64u - shift, (UINTS)0u));
  UINTS sticky = Select((shift != 0u) && IsTrue(below), (UINTS)1u, (UINTS)0u);
  return ToFloats(top.low | sticky) * asfloat((shift + 127u) << 23);
}
FLOATS CastToFloats(FLOATS x) { return x; }
FLOATS CastToFloats(UINTS x) { return ToFloats(x); }
FLOATS CastToFloats(INTS x) {
  FLOATS magnitude = ToFloats(asuint(Abs(x)));
  return asfloat(asuint(magnitude) | (asuint(x) & 0x80000000u));
}
FLOATS CastToFloats(ULONGS x) { return LongMagnitude(x); }
FLOATS CastToFloats(LONGS x) {
  FLOATS magnitude = LongMagnitude(ToUnsigned(Abs(x)));
  return asfloat(asuint(magnitude) | (asuint(x.high) & 0x80000000u));
}
BOOLS IsNumber(FLOATS x) { return (asuint(x) & 0x7FFFFFFFu) <= 0x7F800000u; }
UINTS CastToUints(FLOATS x, float limit, uint high) {
  UINTS inside = (UINTS)min(max(x, (FLOATS)0.0f), (FLOATS)4294967040.0f);
  return Select(IsNumber(x), Select(x < limit, inside, (UINTS)high), (UINTS)0u);
}
INTS CastToInts(FLOATS x, float limit, int high) {
  INTS inside = (INTS)min(max(x, (FLOATS)(-limit)), (FLOATS)2147483520.0f);
  return Select(IsNumber(x), Select(x < limit, inside, (INTS)high), (INTS)0);
}
ULONGS WholeLongs(FLOATS magnitude) {
  UINTS bits = asuint(magnitude);
  UINTS exponent = (bits >> 23) & 0xFFu;
  ULONGS fraction = ULongs((bits & 0x007FFFFFu) | 0x00800000u, (UINTS)0u);
  UINTS up = Select(exponent > 150u, exponent - 150u, (UINTS)0u);
  UINTS down = Select(exponent < 150u, 150u - exponent, (UINTS)0u);
  return ShiftRight(ShiftLeft(fraction, ULongs(up, (UINTS)0u)), ULongs(down, (UINTS)0u));
}
ULONGS CastToULongs(FLOATS x) {
  ULONGS most = ULongs((UINTS)0xFFFFFFFFu, (UINTS)0xFFFFFFFFu);
  ULONGS r = Select(x < 18446744073709551616.0f, WholeLongs(x), most);
  return Select(IsNumber(x) && (x >= 1.0f), r, ULongs((UINTS)0u, (UINTS)0u));
}
LONGS CastToLongs(FLOATS x) {
  BOOLS negative = HasSign(x);
  FLOATS magnitude = asfloat(asuint(x) & 0x7FFFFFFFu);
  LONGS least = Longs((UINTS)0u, (UINTS)0x80000000u);
  LONGS most = Longs((UINTS)0xFFFFFFFFu, (UINTS)0x7FFFFFFFu);
  LONGS r = ToSigned(WholeLongs(magnitude));
  r = Select(negative, Neg(r), r);
  r = Select(magnitude < 9223372036854775808.0f, r, Select(negative, least, most));
  return Select(IsNumber(x) && (magnitude >= 1.0f), r, Longs((UINTS)0u, (UINTS)0u));
}
LONGS CastToLongs(INTS x) { return Longs(asuint(x), asuint(x >> 31)); }
LONGS CastToLongs(UINTS x) { return Longs(x, (UINTS)0u); }
LONGS CastToLongs(LONGS x) { return x; }
LONGS CastToLongs(ULONGS x) { return ToSigned(x); }
ULONGS CastToULongs(INTS x) { return ULongs(asuint(x), asuint(x >> 31)); }
ULONGS CastToULongs(UINTS x) { return ULongs(x, (UINTS)0u); }
ULONGS CastToULongs(LONGS x) { return ToUnsigned(x); }
ULONGS CastToULongs(ULONGS x) { return x; }
// Of integers, the low bits.
UINTS LowWord(INTS x) { return asuint(x); }
UINTS LowWord(UINTS x) { return x; }
UINTS LowWord(LONGS x) { return x.low; }
UINTS LowWord(ULONGS x) { return x.low; }
