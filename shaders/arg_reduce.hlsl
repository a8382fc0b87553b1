// argmin and argmax: the position of the extreme element. c.position_mask selects the first or the
// last of equal ones.
//   LARGEST  1 for argmax
#include "include/reduction_width.hlsli"
#define KERNEL_CONSTANTS ReductionConstants
#define NAN_FIRST 1
#include "include/dispatch.hlsli"
#include "include/candidate.hlsli"

// A position or turn as it is kept, where the smaller one always wins; and back.
UINTS Ordered(UINTS position) { return position ^ c.position_mask; }

struct Part {
  BITS key;
  UINTS position;
};

Part EmptyPart() {
  Part p;
  p.key = (BITS)0;
  p.position = (UINTS)NOWHERE;
  return p;
}

Part Join(Part a, Part b) {
  BOOLS before = CandidateBefore(b.key, b.position, a.key, a.position);
  a.key = before ? b.key : a.key;
  a.position = before ? b.position : a.position;
  return a;
}

// The best element that a lane has read, and its turn (reduction.hlsli).
#if LOAD == LOAD_RECORD
#elif VECTOR_ELEMENTS > 4
// The key in the high bits and the turn plus 1 in the low bits, so that one comparison also decides
// between equal keys.
#define HIGH_ELEMENTS 1
#define KEY_MASK (ELEMENT_MASK << ELEMENT_SHIFT)
#define EACH_ELEMENT(bits) ((bits) * (ELEMENT_BITS == 8 ? 0x01010101u : 0x00010001u))

// The elements of a vector as keys, all at once, in place.
#define PREPARE_ITEM OrderElements
uint4 OrderElements(uint4 v) {
#if IS_FLOAT
  // No sum carries into the next element.
  uint4 magnitudes = v & EACH_ELEMENT(0x7FFFu);
  uint4 nans = (magnitudes + EACH_ELEMENT(0x7FFFu - INFINITY_BITS)) & EACH_ELEMENT(SIGN_BIT);
  uint4 minus_zeros = ~(magnitudes + EACH_ELEMENT(0x7FFFu)) & v & EACH_ELEMENT(SIGN_BIT);
  [branch] if (any((nans | minus_zeros) != 0)) {
    // NaNs become the NaN with the best key, whichever sign that has.
    v ^= minus_zeros;
    v |= (nans >> 15) * ELEMENT_MASK;
    v &= ~(LARGEST ? nans : (uint4)0);
  }
  v ^= ((v >> 15) & EACH_ELEMENT(1u)) * 0x7FFFu;
#endif
#if IS_FLOAT || IS_SIGNED_INT
  v ^= EACH_ELEMENT(SIGN_BIT);
#endif
  return LARGEST ? v : ~v;
}

struct Folded {
  UINTS code;
};

Folded NothingFolded() {
  Folded f;
  f.code = (UINTS)0;
  return f;
}

void TakeOne(inout Folded f, BITS keys, BOOLS inside, uint turn) {
  UINTS code = (keys & KEY_MASK) | ((turn + 1) ^ (c.position_mask & 0xFFFFu));
  f.code = max(f.code, inside ? code : (UINTS)0);
}

UINTS TurnOf(Folded f) { return ((f.code ^ c.position_mask) & 0xFFFFu) - 1; }
BOOLS HasFolded(Folded f) { return f.code != 0; }
BITS KeyOf(Folded f) { return f.code >> ELEMENT_SHIFT; }
#else
struct Folded {
  BITS key;
  UINTS turn;  // plus 1, ordered as positions are
};

Folded NothingFolded() {
  Folded f;
  f.key = (BITS)0;
  f.turn = (UINTS)NOWHERE;
  return f;
}

void TakeOne(inout Folded f, BITS bits, BOOLS inside, uint turn) {
  BITS key = CandidateKeyOf(bits);
  UINTS ordered = ~Ordered((UINTS)turn + 1);
  BOOLS better = inside && CandidateBefore(key, ordered, f.key, f.turn);
  f.key = better ? key : f.key;
  f.turn = better ? ordered : f.turn;
}

UINTS TurnOf(Folded f) { return Ordered(~f.turn) - 1; }
BOOLS HasFolded(Folded f) { return f.turn != NOWHERE; }
BITS KeyOf(Folded f) { return f.key; }
#endif

#if LOAD != LOAD_RECORD
void Take(inout Folded f, BITS b0, BITS b1, BITS b2, BITS b3, BOOLS in0, BOOLS in1, BOOLS in2,
          BOOLS in3, uint turn) {
  TakeOne(f, b0, in0, turn);
  TakeOne(f, b1, in1, turn + SETS);
  TakeOne(f, b2, in2, turn + 2 * SETS);
  TakeOne(f, b3, in3, turn + 3 * SETS);
}
#endif

#ifndef HIGH_ELEMENTS
#define HIGH_ELEMENTS 0
#endif

#define PART_WORDS (2 + IS_WIDE)
#include "include/reduction_words.hlsli"

Words WordsOf(Part p) {
  Words w = {p.key, p.position};
  return w;
}

Part PartOfWords(Words w) {
  Part p = {ALL_WORDS(w)};
  return p;
}

UINTS Finish(Part p) { return Ordered(p.position); }

#define TRACKS_POSITION 1
#include "include/reduction.hlsli"
