// The largest (LARGEST) or smallest of some elements, in a few steps an element: comparisons of the
// bits as they are, whose outcomes tell at the end which of them counts.
#include "include/candidate.hlsli"

// Words that integers order as they are, or floats made to.
#if IS_FLOAT || IS_SIGNED_INT
#define ORDERED INTS
#define LEAST_ORDERED (int)0x80000000
#define GREATEST_ORDERED 0x7FFFFFFF
#else
#define ORDERED UINTS
#define LEAST_ORDERED 0u
#define GREATEST_ORDERED 0xFFFFFFFFu
#endif

// Elements that do not fit into a word are compared as keys.
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

// Signed, the better the larger: below the worst infinity stand the NaNs of its sign, which wrap to
// the NaNs above the best one.
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

// Floats in the order of signed integers, and back.
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
