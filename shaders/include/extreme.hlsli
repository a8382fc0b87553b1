// The largest (LARGEST) or smallest of some elements, in a few steps an element: comparisons of the
// bits as they are, whose outcomes tell at the end which of them counts.
#ifndef OPMILL_EXTREME_HLSLI_
#define OPMILL_EXTREME_HLSLI_

#include "include/candidate.hlsli"

// Where NaN is the worst, or elements do not fit into a word, keys are made of every element.
#if IS_WIDE || (IS_FLOAT && !NAN_FIRST && !LARGEST)
#define EXTREME_OF_KEYS 1
#define HIGH_ELEMENTS 0
#else
#define EXTREME_OF_KEYS 0
#define HIGH_ELEMENTS 1
#endif

#if EXTREME_OF_KEYS

#if IS_FLOAT
#define EMPTY_ELEMENT QUIET_NAN_BITS
#else
// The key 0, as a number.
#define EMPTY_ELEMENT NumberOfKey(LARGEST ? (BITS)0 : Flip((BITS)0))
#endif

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
#if IS_WIDE
  if (KeyAbove(b.key, a.key)) a.key = b.key;
#else
  a.key = max(a.key, b.key);
#endif
  return a;
}

BITS KeyOfPart(Part p) { return p.key; }

#elif IS_FLOAT

// As signed integers the numbers from +0 up are in order, and above those below; as unsigned ones,
// those from -0 down are in reverse order, and above the others. NaNs are at one of both ends.
struct Part {
  int highest;
  uint lowest;
  uint farthest;
};

#define INFINITY_WORD (int)(INFINITY_BITS << ELEMENT_SHIFT | ((1u << ELEMENT_SHIFT) - 1u))
#define MINUS_INFINITY_WORD ((uint)INFINITY_WORD | 0x80000000u)
#define EMPTY_ELEMENT ((INFINITY_BITS | (LARGEST ? SIGN_BIT : 0u)) << ELEMENT_SHIFT)

Part EmptyPart() {
  Part p;
  p.highest = (int)0x80000000;
  p.lowest = 0xFFFFFFFFu;
  p.farthest = 0;
  return p;
}

Part PartOf(uint word) {
  Part p;
  p.highest = (int)word;
  p.lowest = word;
  p.farthest = word;
  return p;
}

Part Join(Part a, Part b) {
  a.highest = max(a.highest, b.highest);
  a.lowest = min(a.lowest, b.lowest);
  a.farthest = max(a.farthest, b.farthest);
  return a;
}

uint BitsOfPart(Part p) {
#if LARGEST
  uint best = p.highest < 0 ? p.lowest : (uint)p.highest;
#else
  uint best = p.farthest < 0x80000000u ? p.lowest : p.farthest;
#endif
  bool has_nan = p.highest > INFINITY_WORD || p.farthest > MINUS_INFINITY_WORD;
  return has_nan ? QUIET_NAN_BITS : best >> ELEMENT_SHIFT;
}

uint KeyOfPart(Part p) { return CandidateKeyOf(BitsOfPart(p)); }

#else

#if IS_SIGNED_INT
#define ORDERED int
#define LEAST_ORDERED (int)0x80000000
#define GREATEST_ORDERED 0x7FFFFFFF
#else
#define ORDERED uint
#define LEAST_ORDERED 0u
#define GREATEST_ORDERED 0xFFFFFFFFu
#endif

#define EMPTY_ELEMENT (uint)(LARGEST ? LEAST_ORDERED : GREATEST_ORDERED)

struct Part {
  ORDERED best;
};

Part EmptyPart() {
  Part p;
  p.best = LARGEST ? LEAST_ORDERED : GREATEST_ORDERED;
  return p;
}

Part PartOf(uint word) {
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

uint BitsOfPart(Part p) { return (uint)p.best >> ELEMENT_SHIFT; }
uint KeyOfPart(Part p) { return CandidateKeyOf(BitsOfPart(p)); }

#endif

#endif  // OPMILL_EXTREME_HLSLI_
