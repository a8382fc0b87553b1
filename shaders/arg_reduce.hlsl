// argmin and argmax: the position of the extreme element. c.position_mask selects the first or the
// last of equal ones.
//   LARGEST  1 for argmax
#include "include/reduction_width.hlsli"
#define KERNEL_CONSTANTS ReductionConstants
#define NAN_FIRST 1
#include "include/dispatch.hlsli"
#include "include/candidate.hlsli"

// A position as it is kept in parts, where the smaller one always wins.
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

// The best element that a lane has read. A turn is the number of an item among those of the lane.
#if LOAD == LOAD_RECORD
#elif VECTOR_ELEMENTS > 4
// The key in the high bits and the turn plus 1 in the low bits, so that one comparison also decides
// between equal keys.
struct Walked {
  UINTS code;
};

Walked NothingWalked() {
  Walked w;
  w.code = (UINTS)0;
  return w;
}

void Take(inout Walked w, BITS bits, BOOLS inside, uint turn) {
  UINTS code = (CandidateKeyOf(bits) << 16) | ((turn + 1) ^ (~c.position_mask & 0xFFFFu));
  w.code = max(w.code, inside ? code : (UINTS)0);
}

UINTS TurnOf(Walked w) { return ((w.code ^ ~c.position_mask) & 0xFFFFu) - 1; }
BOOLS HasWalked(Walked w) { return w.code != 0; }
BITS KeyOf(Walked w) { return w.code >> 16; }
#else
struct Walked {
  BITS key;
  UINTS turn;
};

Walked NothingWalked() {
  Walked w;
  w.key = (BITS)0;
  w.turn = (UINTS)NOWHERE;
  return w;
}

void Take(inout Walked w, BITS bits, BOOLS inside, uint turn) {
  BITS key = CandidateKeyOf(bits);
  // An equal key replaces the previous one only if the last is wanted, or if there was none.
  BOOLS open = (w.turn | c.position_mask) == NOWHERE;
  BOOLS better = inside && (KeyAbove(key, w.key) || (KeyEqual(key, w.key) && open));
  w.key = better ? key : w.key;
  w.turn = better ? (UINTS)turn : w.turn;
}

UINTS TurnOf(Walked w) { return w.turn; }
BOOLS HasWalked(Walked w) { return w.turn != NOWHERE; }
BITS KeyOf(Walked w) { return w.key; }
#endif

#define HIGH_ELEMENTS 0

#if IS_WIDE
#define PART_WORDS 3
#else
#define PART_WORDS 2
#endif
#include "include/reduction_words.hlsli"

Words WordsOf(Part p) {
  Words w;
#if IS_WIDE
  w.a = p.key.x;
  w.b = p.key.y;
  w.c = p.position;
#else
  w.a = p.key;
  w.b = p.position;
#endif
  return w;
}

Part PartOfWords(Words w) {
  Part p;
#if IS_WIDE
  p.key = uint2(w.a, w.b);
  p.position = w.c;
#else
  p.key = w.a;
  p.position = w.b;
#endif
  return p;
}

UINTS Finish(Part p) { return Ordered(p.position); }

#define TRACKS_POSITION 1
#include "include/reduction.hlsli"
