// MIN and MAX: every driver agrees on NaN, denormals and -0 (below +0).
#define LARGEST (FUNCTION == FUNCTION_MAX)
#define NAN_FIRST 1
#include "include/extreme.hlsli"

#define CASCADE 0

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

uint4 Pack(State s) {
#if EXTREME_OF_KEYS
  return uint4(s.part.key, 0, 0);
#elif IS_FLOAT
  return uint4((uint)s.part.highest, s.part.lowest, s.part.farthest, 0);
#else
  return uint4((uint)s.part.best, 0, 0, 0);
#endif
}

State Unpack(uint4 record) {
  State s;
#if EXTREME_OF_KEYS
  s.part.key = record.xy;
#elif IS_FLOAT
  s.part.highest = (int)record.x;
  s.part.lowest = record.y;
  s.part.farthest = record.z;
#else
  s.part.best = (ORDERED)record.x;
#endif
  return s;
}

BITS Finish(State s) {
#if EXTREME_OF_KEYS
  return NumberOfKey(LARGEST ? s.part.key : Flip(s.part.key));
#else
  return BitsOfPart(s.part);
#endif
}
