// SUM, MULTIPLY, L1 and SUM_SQUARE of integers, which wrap.
#define HIGH_ELEMENTS 0
#define VALUE BITS
#define VALUE_OF_WORDS ALL_WORDS

#if IS_WIDE
#define EMPTY_VALUE uint2(FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u, 0u)

uint2 Add(uint2 a, uint2 b) {
  uint low = a.x + b.x;
  return uint2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}

// The full product of two words: the shader model has no multiply-high.
uint2 MultiplyWords(uint a, uint b) {
  uint a0 = a & 0xFFFFu, a1 = a >> 16;
  uint b0 = b & 0xFFFFu, b1 = b >> 16;
  uint low = a0 * b0;
  uint middle = a1 * b0 + (low >> 16);
  uint carry = a0 * b1 + (middle & 0xFFFFu);
  return uint2(a * b, a1 * b1 + (middle >> 16) + (carry >> 16));
}

uint2 Multiply(uint2 a, uint2 b) {
  uint2 product = MultiplyWords(a.x, b.x);
  return uint2(product.x, product.y + a.x * b.y + a.y * b.x);
}

uint2 Absolute(uint2 a) { return (a.y & SIGN_BIT) != 0 ? Add(~a, uint2(1, 0)) : a; }

#else
#define EMPTY_VALUE (UINTS)(FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u)

UINTS Add(UINTS a, UINTS b) { return a + b; }
UINTS Multiply(UINTS a, UINTS b) { return a * b; }
UINTS Absolute(UINTS a) { return (UINTS)abs((INTS)a); }

#endif

BITS ValueOf(BITS bits) {
#if FUNCTION == FUNCTION_L1 && IS_SIGNED_INT
  return Absolute(bits);
#elif FUNCTION == FUNCTION_SUM_SQUARE
  return Multiply(bits, bits);
#else
  return bits;
#endif
}

BITS JoinValues(BITS a, BITS b) {
#if FUNCTION == FUNCTION_MULTIPLY
  return Multiply(a, b);
#else
  return Add(a, b);
#endif
}

#include "include/value_part.hlsli"

BITS Finish(Part p) { return p.value; }
