// SUM, MULTIPLY, L1 and SUM_SQUARE of 64-bit integers, as pairs of words, wrap.
#define HIGH_ELEMENTS 0

#define EMPTY_ELEMENT uint2(FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u, 0u)

struct Part {
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

Part EmptyPart() {
  Part p;
  p.value = EMPTY_ELEMENT;
  return p;
}

Part PartOf(uint2 bits) {
  Part p;
  p.value = bits;
#if FUNCTION == FUNCTION_L1 && IS_SIGNED_INT
  if ((bits.y & SIGN_BIT) != 0) p.value = Negate64(bits);
#elif FUNCTION == FUNCTION_SUM_SQUARE
  p.value = Multiply64(bits, bits);
#endif
  return p;
}

Part Join(Part a, Part b) {
#if FUNCTION == FUNCTION_MULTIPLY
  a.value = Multiply64(a.value, b.value);
#else
  a.value = Add64(a.value, b.value);
#endif
  return a;
}

#define PART_WORDS 2
#include "include/reduction_words.hlsli"

Words WordsOf(Part p) {
  Words w;
  w.a = p.value.x;
  w.b = p.value.y;
  return w;
}

Part PartOfWords(Words w) {
  Part p;
  p.value = uint2(w.a, w.b);
  return p;
}

uint2 Finish(Part p) { return p.value; }
