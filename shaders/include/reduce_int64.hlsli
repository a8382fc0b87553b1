// SUM, MULTIPLY, L1 and SUM_SQUARE of 64-bit integers, as pairs of words, wrap.
#define CASCADE 0
#define HEAVY 0

struct State {
  uint2 value;
};

uint2 Add64(uint2 a, uint2 b) {
  uint low = a.x + b.x;
  return uint2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}

uint2 Negate64(uint2 a) { return Add64(~a, uint2(1, 0)); }

// The full product of two words: the shader model has no multiply-high.
uint2 MultiplyWords(uint a, uint b) {
  uint a0 = a & 0xFFFFu, a1 = a >> 16;
  uint b0 = b & 0xFFFFu, b1 = b >> 16;
  uint low = a0 * b0;
  uint middle = a1 * b0 + (low >> 16);
  uint carry = a0 * b1 + (middle & 0xFFFFu);
  return uint2(a * b, a1 * b1 + (middle >> 16) + (carry >> 16));
}

uint2 Multiply64(uint2 a, uint2 b) {
  uint2 product = MultiplyWords(a.x, b.x);
  return uint2(product.x, product.y + a.x * b.y + a.y * b.x);
}

State Identity() {
  State s;
  s.value = uint2(FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u, 0u);
  return s;
}

void Combine(inout State s, State other) {
#if FUNCTION == FUNCTION_MULTIPLY
  s.value = Multiply64(s.value, other.value);
#else
  s.value = Add64(s.value, other.value);
#endif
}

void Accumulate(inout State s, BITS bits, uint item, bool valid) {
  State x;
  x.value = bits;
#if FUNCTION == FUNCTION_L1 && IS_SIGNED_INT
  if ((bits.y & SIGN_BIT) != 0) x.value = Negate64(bits);
#elif FUNCTION == FUNCTION_SUM_SQUARE
  x.value = Multiply64(bits, bits);
#endif
  if (valid) Combine(s, x);
}

uint4 Pack(State s) { return uint4(s.value, 0, 0); }

State Unpack(uint4 record) {
  State s;
  s.value = record.xy;
  return s;
}

uint2 Finish(State s) { return s.value; }
