// argmin and argmax: the position of the extreme element, the first or the last among equals, as
// c.position_mask says.
//   LARGEST      1 for argmax
//   NAN_FIRST    1 when NaN comes before every number
//   OUTPUT_WIDE  1 for 64-bit indices
#define SHORT_WALKS (ITEMS > 0)
#include "reduction_constants.h"
#define KERNEL_CONSTANTS ReductionConstants
#include "include/dispatch.hlsli"
#include "include/extreme.hlsli"

#define CASCADE 0
#define TRACKS_POSITION 1
#define PARTS_HAVE_ROWS (WIDTH == 4 && VECTOR_ELEMENTS > 4)

#if PARTS_HAVE_ROWS
#include "include/row_part.hlsli"
#endif

// The walk keeps the best key and the item whose block had it; a second look at that block alone
// finds the position, so that most elements cost no more than for MAX.
struct State {
  BITS key;
  UINTS item;
};

State Identity() {
  State s;
  s.key = (BITS)0;
  s.item = (UINTS)NOWHERE;
  return s;
}

void Take(inout State s, Part p, uint item) {
  BITS key = KeyOfPart(p);
  // Of equals the later one if the last is wanted, or if there was none.
  BOOLS open = (s.item | c.position_mask) == NOWHERE;
  BOOLS better = KeyAbove(key, s.key) || (KeyEqual(key, s.key) && open);
  s.key = better ? key : s.key;
  s.item = better ? (UINTS)item : s.item;
}

// A position as records hold it: the smaller comes first.
UINTS Ordered(UINTS position) { return position ^ c.position_mask; }

// The second look: at an element of the block that may be the best one. `found` starts NOWHERE, and
// `position` is Ordered, or NOWHERE.
void Look(inout UINTS found, State s, BITS bits, UINTS position) {
  found = KeyEqual(CandidateKeyOf(bits), s.key) ? min(found, position) : found;
}

void Combine(inout State s, State other) {
  BOOLS before = CandidateBefore(other.key, other.item, s.key, s.item);
  s.key = before ? other.key : s.key;
  s.item = before ? other.item : s.item;
}

#define STATE_WORDS 2
#if IS_WIDE
uint4 Pack(State s) { return PackCandidate(s.key, s.item); }

State Unpack(uint4 record) {
  State s;
  s.key = RecordKey(record);
  s.item = record.z;
  return s;
}
#else
UINTS FirstWord(State s) { return s.key; }
UINTS SecondWord(State s) { return s.item; }

State StateOf(UINTS first, UINTS second) {
  State s;
  s.key = first;
  s.item = second;
  return s;
}
#endif

UINTS Finish(State s) { return Ordered(s.item); }

#if PARTS_HAVE_ROWS
State StateOfRowPart(RowPart p, uint first_item) {
  State s;
  s.key = CandidateKeyOf(BitsOfRowPart(p));
  s.item = Ordered(c.index_base + first_item + RowOfCode((UINTS)p.code));
  return s;
}
#endif

#include "include/reduction.hlsli"
