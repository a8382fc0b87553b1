// MIN and MAX: every driver agrees on NaN, denormals and -0 (below +0).
#define LARGEST (FUNCTION == FUNCTION_MAX)
#define NAN_FIRST 1
#include "include/extreme.hlsli"

#define CASCADE 0
#define PARTS_ARE_ELEMENTS !IS_WIDE

struct State {
  Part part;
};

State Identity() {
  State s;
  s.part = EmptyPart();
  return s;
}

void Take(inout State s, Part p, uint item) { s.part = Join(s.part, p); }

void Combine(inout State s, State other) { s.part = Join(s.part, other.part); }

#define STATE_WORDS 1
#if IS_WIDE
uint4 Pack(State s) { return uint4(s.part.key, 0, 0); }

State Unpack(uint4 record) {
  State s;
  s.part.key = record.xy;
  return s;
}
#elif IS_FLOAT
UINTS FirstWord(State s) { return (UINTS)s.part.key; }

State StateOf(UINTS first, UINTS second) {
  State s;
  s.part.key = (INTS)first;
  return s;
}
#else
UINTS FirstWord(State s) { return (UINTS)s.part.best; }

State StateOf(UINTS first, UINTS second) {
  State s;
  s.part.best = (ORDERED)first;
  return s;
}
#endif

BITS Finish(State s) {
#if IS_WIDE
  return NumberOfKey(LARGEST ? s.part.key : Flip(s.part.key));
#else
  return BitsOfPart(s.part);
#endif
}
