// argmin and argmax: the position of the extreme element, the first or the last among equals.
//   LARGEST      1 for argmax
//   FROM_LAST    1 for the last of equals (AXIS_DIRECTION_DECREASING)
//   NAN_FIRST    1 when NaN comes before every number
//   OUTPUT_WIDE  1 for 64-bit indices
#include "include/extreme.hlsli"

#define CASCADE 0
#define TRACKS_POSITION 1

// The walk keeps the best key and the item whose block had it; a second look at that block alone
// finds the position, so that most elements cost no more than for MAX.
struct State {
  BITS key;
  uint item;
};

State Identity() {
  State s;
  s.key = (BITS)0;
  s.item = NOWHERE;
  return s;
}

void Take(inout State s, Part p, uint item) {
  BITS key = KeyOfPart(p);
#if FROM_LAST
  bool better = !KeyAbove(s.key, key);
#else
  bool better = KeyAbove(key, s.key) || s.item == NOWHERE;
#endif
  if (better) {
    s.key = key;
    s.item = item;
  }
}

// A position as records hold it: the smaller comes first.
uint Ordered(uint position) {
#if FROM_LAST
  return ~position;
#else
  return position;
#endif
}

// The second look: at an element of the block that may be the best one. `found` starts NOWHERE.
void Look(inout uint found, State s, BITS bits, uint position, bool valid) {
  if (valid && KeyEqual(CandidateKeyOf(bits), s.key)) found = min(found, Ordered(position));
}

void Combine(inout State s, State other) {
  if (CandidateBefore(other.key, other.item, s.key, s.item)) s = other;
}

uint4 Pack(State s) { return PackCandidate(s.key, s.item); }

State Unpack(uint4 record) {
  State s;
  s.key = RecordKey(record);
  s.item = record.z;
  return s;
}

#if OUTPUT_WIDE
uint2 Finish(State s) { return uint2(Ordered(s.item), 0); }
#else
uint Finish(State s) { return Ordered(s.item); }
#endif

#include "include/reduction.hlsli"
