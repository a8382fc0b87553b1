// The largest (if LARGEST) or smallest of some elements. A Part holds the best element so far, as an
// integer that one instruction compares. Its key (candidate.hlsli) is computed only at the end.
#include "include/candidate.hlsli"

// The integers that words are compared as. Floats are converted to signed ones.
#if IS_FLOAT || IS_SIGNED_INT
#define ORDERED INTS
#define LEAST_ORDERED (int)0x80000000
#define GREATEST_ORDERED 0x7FFFFFFF
#else
#define ORDERED UINTS
#define LEAST_ORDERED 0u
#define GREATEST_ORDERED 0xFFFFFFFFu
#endif

// Elements of 64 bits are compared as keys.
#if IS_WIDE
#define HIGH_ELEMENTS 0

// The key 0, as a number.
#define EMPTY_ELEMENT NumberOfKey(LARGEST ? (BITS)0 : Flip((BITS)0))

struct Part {
  BITS key;
};

Part EmptyPart() {
  Part p;
  p.key = (BITS)0;
  return p;
}

Part PartOf(BITS bits) {
  Part p;
  p.key = CandidateKeyOf(bits);
  return p;
}

Part Join(Part a, Part b) {
  if (KeyAbove(b.key, a.key)) a.key = b.key;
  return a;
}

BITS KeyOfPart(Part p) { return p.key; }

#elif IS_FLOAT
#define HIGH_ELEMENTS 1

// Greater keys are better. Ordered as integers, NaNs are above the best infinity and below the worst
// one. Subtracting NAN_KEYS wraps those below around, so that all NaNs are above the best infinity.
struct Part {
  INTS key;
};

#define NAN_KEYS (int)((SIGN_BIT - 1u - INFINITY_BITS) << ELEMENT_SHIFT)
#define BEST_INFINITY_KEY \
  ((int)((INFINITY_BITS << ELEMENT_SHIFT) | ((1u << ELEMENT_SHIFT) - 1u)) - NAN_KEYS)
#define EMPTY_ELEMENT ((INFINITY_BITS | (LARGEST ? SIGN_BIT : 0u)) << ELEMENT_SHIFT)

Part EmptyPart() {
  Part p;
  p.key = (INTS)0x80000000;
  return p;
}

// Converts the bits of a float to a signed integer of the same order, and back.
INTS OrderedWord(INTS word) { return word ^ ((word >> 31) & 0x7FFFFFFF); }

Part PartOf(UINTS word) {
  INTS ordered = OrderedWord((INTS)word);
  Part p;
  p.key = (LARGEST ? ordered : ~ordered) - NAN_KEYS;
  return p;
}

Part Join(Part a, Part b) {
  a.key = max(a.key, b.key);
  return a;
}

UINTS BitsOfPart(Part p) {
  INTS ordered = p.key + NAN_KEYS;
  UINTS word = (UINTS)OrderedWord(LARGEST ? ordered : ~ordered);
  return p.key > BEST_INFINITY_KEY ? (UINTS)QUIET_NAN_BITS : word >> ELEMENT_SHIFT;
}

UINTS KeyOfPart(Part p) { return CandidateKeyOf(BitsOfPart(p)); }

#else
#define HIGH_ELEMENTS 1

#define EMPTY_ELEMENT (uint)(LARGEST ? LEAST_ORDERED : GREATEST_ORDERED)

struct Part {
  ORDERED best;
};

Part EmptyPart() {
  Part p;
  p.best = (ORDERED)(LARGEST ? LEAST_ORDERED : GREATEST_ORDERED);
  return p;
}

Part PartOf(UINTS word) {
  Part p;
  p.best = (ORDERED)word;
  return p;
}

Part Join(Part a, Part b) {
#if LARGEST
  a.best = max(a.best, b.best);
#else
  a.best = min(a.best, b.best);
#endif
  return a;
}

UINTS BitsOfPart(Part p) { return (UINTS)p.best >> ELEMENT_SHIFT; }
UINTS KeyOfPart(Part p) { return CandidateKeyOf(BitsOfPart(p)); }

#endif
