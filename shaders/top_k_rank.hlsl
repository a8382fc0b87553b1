// top_k: an element's rank is how many come before it, in a short sequence or among those that lanes
// alone selected from a longer one. A lane counts that for 16 of them at a time, and writes those that
// are wanted. Nothing is sorted.
//   LARGEST      1 when the largest element comes first
//   IS_SELECTED  0: of the elements of sequences, 1: of a selection
//   LAYOUT       elements: how sequences lie in memory: LAYOUT_ROWS, LAYOUT_STRIDED
//   INDEX_WIDE   1 for 64-bit indices
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKRankConstants
#include "include/top_k_lists.hlsli"
#include "include/top_k_quads.hlsli"
#include "include/top_k_results.hlsli"

// Slots: a selection's candidates, or a sequence's elements, and before the first of them what else its
// first vector holds.
#define BLOCK_SLOTS TOP_K_RANKED_SLOTS
#define SETS 4
#include "include/each_set.hlsli"

// Signed keys of four slots.
struct KeySet {
  int4 key;
#if IS_WIDE
  int4 low;
#endif
};

#define BEST_KEY 0x7FFFFFFF
#define WORST_KEY ((int)0x80000000)

KeySet Splat(KeySet keys, uint i) {
  KeySet key;
  key.key = keys.key[i];
#if IS_WIDE
  key.low = keys.low[i];
#endif
  return key;
}

KeySet ChooseKeys(bool4 first, int key, KeySet keys) {
  KeySet chosen;
  chosen.key = first ? (int4)key : keys.key;
#if IS_WIDE
  chosen.low = first ? (int4)key : keys.low;
#endif
  return chosen;
}

// 1 where a key of `a` is above that of `b`.
uint4 CountAbove(KeySet a, KeySet b) {
#if IS_WIDE
  return (uint4)(a.key > b.key) | ((uint4)(a.key == b.key) & (uint4)(a.low > b.low));
#else
  return (uint4)(a.key > b.key);
#endif
}

uint4 CountEqual(KeySet a, KeySet b) {
#if IS_WIDE
  return (uint4)(a.key == b.key) & (uint4)(a.low == b.low);
#else
  return (uint4)(a.key == b.key);
#endif
}

// Slots [before, end) of a sequence.
struct Slots {
  uint start;  // where slot 0 lies
  uint before;
  uint end;
};

#if IS_SELECTED

Buffer<uint4> Selection : register(t1);

Slots FindSlots(uint sequence, uint start) {
  uint4 header = Selection[instance.read1 + sequence * HEADER_RECORDS];
  Slots slots;
  slots.start = ListOf(sequence, header[IS_TAKEN_AT]);
  slots.before = 0;
  slots.end = header[COUNT_AT];
  return slots;
}

uint4 SlotsOfSet(uint set) { return set * 4 + uint4(0, 1, 2, 3); }

Quad LoadQuad(Slots slots, uint slot) {
  Quad quad;
  LOAD_QUAD(quad, Selection, slots.start, min(slot, slots.end - 1))
  return quad;
}

KeySet LoadSet(Slots slots, uint first, uint set) {
  Quad quad = LoadQuad(slots, first + set * 4);
  KeySet keys;
  keys.key = SignedKeys(quad.key);
#if IS_WIDE
  keys.low = SignedKeys(quad.low);
#endif
  return keys;
}

uint4 PositionsOf(Slots slots, uint first, uint set) {
  return LoadQuad(slots, first + set * 4).position;
}

#else

Slots FindSlots(uint sequence, uint start) {
  Slots slots;
  slots.before = ElementsBefore(start);
  slots.start = start - slots.before;
  slots.end = slots.before + c.part.length;
  return slots;
}

// Of a block's first: those of a vector of narrow elements have theirs from all of it.
uint4 SlotsOfSet(uint set) {
#if LAYOUT == LAYOUT_ROWS && !IS_WIDE
  return set / WORD_SETS * VECTOR_ELEMENTS + set % WORD_SETS + uint4(0, 1, 2, 3) * WORD_SETS;
#else
  return set * 4 + uint4(0, 1, 2, 3);
#endif
}

#if LAYOUT == LAYOUT_ROWS
uint4 LoadVector(Slots slots, uint slot) {
  return Input[(slots.start + min(slot, slots.end - 1)) / VECTOR_ELEMENTS];
}
#else
BITS LoadSlot(Slots slots, uint slot) {
  return LoadElement(slots.start, min(slot, slots.end - 1));
}
#endif

KeySet LoadSet(Slots slots, uint first, uint set) {
  KeySet keys;
#if IS_WIDE
  uint slot = first + set * 4;
#if LAYOUT == LAYOUT_ROWS
  uint4 a = LoadVector(slots, slot), b = LoadVector(slots, slot + 2);
  uint2 k0 = KeyOf(a.xy), k1 = KeyOf(a.zw), k2 = KeyOf(b.xy), k3 = KeyOf(b.zw);
#else
  uint2 k0 = KeyOf(LoadSlot(slots, slot)), k1 = KeyOf(LoadSlot(slots, slot + 1));
  uint2 k2 = KeyOf(LoadSlot(slots, slot + 2)), k3 = KeyOf(LoadSlot(slots, slot + 3));
#endif
  keys.key = SignedKeys(uint4(k0.y, k1.y, k2.y, k3.y));
  keys.low = SignedKeys(uint4(k0.x, k1.x, k2.x, k3.x));
#else
#if LAYOUT == LAYOUT_ROWS
  uint slot = first + set / WORD_SETS * VECTOR_ELEMENTS;
  uint4 words = WordsOf(LoadVector(slots, slot), set % WORD_SETS);
#else
  uint slot = first + set * 4;
  uint4 words = uint4(LoadSlot(slots, slot), LoadSlot(slots, slot + 1),
                      LoadSlot(slots, slot + 2), LoadSlot(slots, slot + 3));
  words <<= WORD_SHIFT;
#endif
  keys.key = SignedKeys(FoldNans(RawKeysOf(words)));
#endif
  return keys;
}

uint4 PositionsOf(Slots slots, uint first, uint set) {
  return c.part.first_position + first + SlotsOfSet(set) - slots.before;
}

#endif

// Sets that have slots of a sequence's first vector.
#if IS_WIDE
#define FIRST_SETS 1
#else
#define FIRST_SETS WORD_SETS
#endif

// Of set `set` of the block whose first slot is `first`: slots before the sequence come before all of it.
KeySet PutBefore(Slots slots, uint first, uint set, KeySet keys) {
  if (set >= FIRST_SETS) return keys;
  return ChooseKeys(first + SlotsOfSet(set) < slots.before, BEST_KEY, keys);
}

// Those behind it have any key.
KeySet LoadBegun(Slots slots, uint first, uint set) {
  return PutBefore(slots, first, set, LoadSet(slots, first, set));
}

// Those behind it come last, those before it have any key.
KeySet LoadEnded(Slots slots, uint first, uint set) {
  return ChooseKeys(first + SlotsOfSet(set) >= slots.end, WORST_KEY, LoadSet(slots, first, set));
}

// The element's key again.
BITS KeyOfSet(KeySet keys, uint i) {
#if IS_WIDE
  return uint2((uint)keys.low[i], (uint)keys.key[i]) ^ 0x80000000u;
#else
  return (uint)keys.key[i] ^ 0x80000000u;
#endif
}

#define MEMBER(N) \
  KeySet keys##N; \
  uint4 ranks##N;

// A block and, of each of its slots, how many come before it, as far as they have been counted.
struct Ranked {
  EACH_SET(MEMBER)
};

void CountFormer(inout Ranked ranked, KeySet former) {
#define TAKE_OFF(N) ranked.ranks##N -= CountAbove(ranked.keys##N, former);
  EACH_SET(TAKE_OFF)
}

// `own` stands at slot `slot` of the block.
void CountOwn(inout Ranked ranked, KeySet own, uint slot) {
#define ADD_OWN(N)                                     \
  ranked.ranks##N += CountAbove(own, ranked.keys##N) | \
                     (CountEqual(own, ranked.keys##N) & (uint4)(slot < SlotsOfSet(N)));
  EACH_SET(ADD_OWN)
}

void CountLater(inout Ranked ranked, KeySet later) {
#define ADD_LATER(N) ranked.ranks##N += CountAbove(later, ranked.keys##N);
  EACH_SET(ADD_LATER)
}

void StoreSet(Offsets place, Slots slots, KeySet keys, uint4 ranks, uint first, uint set) {
  uint4 at = first + SlotsOfSet(set);
  uint4 positions = PositionsOf(slots, first, set);
  [unroll] for (uint i = 0; i < 4; ++i) {
    [branch] if (at[i] >= slots.before && at[i] < slots.end && ranks[i] < c.k) {
      StoreResult(place, ranks[i], KeyOfSet(keys, i), positions[i]);
    }
  }
}

void RankBlock(uint sequence, uint first) {
  Offsets place = KeptOffsets(sequence);
  Slots slots = FindSlots(sequence, FirstElement(place.input));
  if (first >= slots.end) return;

  // Slots before the first element count as if they came before all, which is taken off here; those
  // behind the last count for nothing.
  Ranked ranked;
#define BEGIN(N)                                                           \
  ranked.keys##N = PutBefore(slots, first, N, LoadEnded(slots, first, N)); \
  ranked.ranks##N = first - slots.before;
  EACH_SET(BEGIN)

  // Of elements before the block all but those that are below. Whole blocks at a time: at the end of a
  // loop a software device chooses lane by lane what is kept.
  uint i;
  [loop] for (uint former = 0; former < first; former += BLOCK_SLOTS) {
#define LOAD_FORMER(N) KeySet former##N = LoadBegun(slots, former, N);
    EACH_SET(LOAD_FORMER)
#define COUNT_FORMER(N) \
  [unroll] for (i = 0; i < 4; ++i) CountFormer(ranked, Splat(former##N, i));
    EACH_SET(COUNT_FORMER)
  }
  // Within it by their places.
#define COUNT_OWN(N) \
  [unroll] for (i = 0; i < 4; ++i) CountOwn(ranked, Splat(ranked.keys##N, i), SlotsOfSet(N)[i]);
  EACH_SET(COUNT_OWN)
  // Of those behind it all that are above.
  [loop] for (uint later = first + BLOCK_SLOTS; later < slots.end; later += BLOCK_SLOTS) {
#define LOAD_LATER(N) KeySet later##N = LoadEnded(slots, later, N);
    EACH_SET(LOAD_LATER)
#define COUNT_LATER(N) \
  [unroll] for (i = 0; i < 4; ++i) CountLater(ranked, Splat(later##N, i));
    EACH_SET(COUNT_LATER)
  }

#define STORE(N) StoreSet(place, slots, ranked.keys##N, ranked.ranks##N, first, N);
  EACH_SET(STORE)
}

// Neighbouring lanes rank the same slots of neighbouring sequences, and then the next of these.
[numthreads(THREADS, 1, 1)]
void RankElements(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) {
    uint sequence = unit / (c.slot_blocks * c.side_by_side) * c.side_by_side + unit % c.side_by_side;
    uint block = unit / c.side_by_side % c.slot_blocks;
    if (sequence < c.sequences) RankBlock(sequence, block * BLOCK_SLOTS);
  }
}
