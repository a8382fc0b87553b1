// MIN and MAX. All drivers give the same result for NaN, denormals and -0 (which is below +0).
#define LARGEST (FUNCTION == FUNCTION_MAX)
#define NAN_FIRST 1
#include "include/extreme.hlsli"

void Take(inout Part p, BITS bits, BOOLS inside, uint turn) {
  p = Join(p, PartOf(inside ? bits : (BITS)EMPTY_ELEMENT));
}

#if IS_WIDE
#define PART_WORDS 2
#else
#define PART_WORDS 1
#endif
#include "include/reduction_words.hlsli"

Words WordsOf(Part p) {
  Words w;
#if IS_WIDE
  w.a = p.key.x;
  w.b = p.key.y;
#elif IS_FLOAT
  w.a = (UINTS)p.key;
#else
  w.a = (UINTS)p.best;
#endif
  return w;
}

Part PartOfWords(Words w) {
  Part p;
#if IS_WIDE
  p.key = uint2(w.a, w.b);
#elif IS_FLOAT
  p.key = (INTS)w.a;
#else
  p.best = (ORDERED)w.a;
#endif
  return p;
}

BITS Finish(Part p) {
#if IS_WIDE
  return NumberOfKey(LARGEST ? p.key : Flip(p.key));
#else
  return BitsOfPart(p);
#endif
}
