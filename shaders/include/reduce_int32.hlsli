// SUM, MULTIPLY, L1 and SUM_SQUARE of 32-bit integers wrap.
#define HIGH_ELEMENTS 0

struct Part {
  UINTS value;
};

#define EMPTY_ELEMENT (FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u)

Part EmptyPart() {
  Part p;
  p.value = (UINTS)EMPTY_ELEMENT;
  return p;
}

Part PartOf(UINTS bits) {
  Part p;
  p.value = bits;
#if FUNCTION == FUNCTION_L1 && IS_SIGNED_INT
  p.value = (UINTS)abs((INTS)bits);
#elif FUNCTION == FUNCTION_SUM_SQUARE
  p.value = bits * bits;
#endif
  return p;
}

Part Join(Part a, Part b) {
#if FUNCTION == FUNCTION_MULTIPLY
  a.value *= b.value;
#else
  a.value += b.value;
#endif
  return a;
}

#define PART_WORDS 1
#include "include/reduction_words.hlsli"

Words WordsOf(Part p) {
  Words w;
  w.a = p.value;
  return w;
}

Part PartOfWords(Words w) {
  Part p;
  p.value = w.a;
  return p;
}

UINTS Finish(Part p) { return p.value; }
