// argmin and argmax: the position of the extreme element, the first or the last among equals.
//   LARGEST      1 for argmax
//   FROM_LAST    1 for the last of equals (AXIS_DIRECTION_DECREASING)
//   NAN_FIRST    1 when NaN comes before every number
//   OUTPUT_WIDE  1 for 64-bit indices
#include "include/candidate.hlsli"

#define CASCADE 0
#define HEAVY 0
#define TRACKS_POSITION 1

// A candidate whose position is found after the walk, from the item that it was met in.
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

void Accumulate(inout State s, BITS bits, uint item, bool valid) {
  BITS key = CandidateKeyOf(bits);
#if FROM_LAST
  bool better = !KeyAbove(s.key, key);
#else
  bool better = KeyAbove(key, s.key) || s.item == NOWHERE;
#endif
  if (valid && better) {
    s.key = key;
    s.item = item;
  }
}

void Settle(inout State s, uint position) {
#if FROM_LAST
  position = ~position;
#endif
  if (s.item != NOWHERE) s.item = position;
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

uint FinishPosition(State s) {
#if FROM_LAST
  return ~s.item;
#else
  return s.item;
#endif
}

#if OUTPUT_WIDE
uint2 Finish(State s) { return uint2(FinishPosition(s), 0); }
#else
uint Finish(State s) { return FinishPosition(s); }
#endif

#include "include/reduction.hlsli"
