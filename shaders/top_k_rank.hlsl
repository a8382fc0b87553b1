// top_k of short sequences: an element's rank is how many of its sequence come before it. A lane
// counts that for 16 elements at a time, and writes those that are wanted. Nothing is sorted.
//   LARGEST     1 when the largest element comes first
//   LAYOUT      how sequences lie in memory: LAYOUT_ROWS, LAYOUT_STRIDED
//   INDEX_WIDE  1 for 64-bit indices
#include "include/top_k_results.hlsli"

// Slots: a sequence's elements, and before the first of them what else its first vector holds.
#define BLOCK_SLOTS 16
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

// Slots of set `set` of a block: those of a vector of narrow elements have theirs from all of it.
uint4 SlotsOfSet(uint set) {
#if LAYOUT == LAYOUT_ROWS && !IS_WIDE
  return set / WORD_SETS * VECTOR_ELEMENTS + set % WORD_SETS + uint4(0, 1, 2, 3) * WORD_SETS;
#else
  return set * 4 + uint4(0, 1, 2, 3);
#endif
}

#if LAYOUT == LAYOUT_ROWS
uint SlotsBefore(uint start) { return start % VECTOR_ELEMENTS; }

uint4 LoadVector(uint start, uint end, uint slot) {
  return Input[(start + min(slot, end - 1)) / VECTOR_ELEMENTS];
}
#else
uint SlotsBefore(uint start) { return 0; }

BITS LoadSlot(uint start, uint end, uint slot) { return LoadElement(start, min(slot, end - 1)); }
#endif

// Set `set` of the block whose first slot is `first`. Slots from `end` on have any key.
KeySet LoadSet(uint start, uint end, uint first, uint set) {
  KeySet keys;
#if IS_WIDE
  uint slot = first + set * 4;
#if LAYOUT == LAYOUT_ROWS
  uint4 a = LoadVector(start, end, slot), b = LoadVector(start, end, slot + 2);
  uint2 k0 = KeyOf(a.xy), k1 = KeyOf(a.zw), k2 = KeyOf(b.xy), k3 = KeyOf(b.zw);
#else
  uint2 k0 = KeyOf(LoadSlot(start, end, slot)), k1 = KeyOf(LoadSlot(start, end, slot + 1));
  uint2 k2 = KeyOf(LoadSlot(start, end, slot + 2)), k3 = KeyOf(LoadSlot(start, end, slot + 3));
#endif
  keys.key = SignedKeys(uint4(k0.y, k1.y, k2.y, k3.y));
  keys.low = SignedKeys(uint4(k0.x, k1.x, k2.x, k3.x));
#else
#if LAYOUT == LAYOUT_ROWS
  uint slot = first + set / WORD_SETS * VECTOR_ELEMENTS;
  uint4 words = WordsOf(LoadVector(start, end, slot), set % WORD_SETS);
#else
  uint slot = first + set * 4;
  uint4 words = uint4(LoadSlot(start, end, slot), LoadSlot(start, end, slot + 1),
                      LoadSlot(start, end, slot + 2), LoadSlot(start, end, slot + 3));
  words <<= WORD_SHIFT;
#endif
  keys.key = SignedKeys(FoldNans(RawKeysOf(words)));
#endif
  return keys;
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

KeySet LoadOwn(uint start, uint before, uint end, uint first, uint set) {
  uint4 slots = first + SlotsOfSet(set);
  KeySet keys = ChooseKeys(slots >= end, WORST_KEY, LoadSet(start, end, first, set));
  return ChooseKeys(slots < before, BEST_KEY, keys);
}

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

void StoreSet(Offsets place, KeySet keys, uint4 ranks, uint4 positions) {
  [unroll] for (uint i = 0; i < 4; ++i) {
    [branch] if (positions[i] < c.list_length && ranks[i] < c.k) {
      StoreResult(place, ranks[i], KeyOfSet(keys, i), c.index_base + positions[i]);
    }
  }
}

void RankBlock(uint sequence, uint first) {
  Offsets place = KeptOffsets(sequence);
  uint start = FirstElement(place.input);
  uint before = SlotsBefore(start);
  start -= before;
  uint end = before + c.list_length;

  // Slots before the first element count as if they came before all, which is taken off here; those
  // behind the last count for nothing.
  Ranked ranked;
#define BEGIN(N)                                          \
  ranked.keys##N = LoadOwn(start, before, end, first, N); \
  ranked.ranks##N = first - before;
  EACH_SET(BEGIN)

  // Of elements before the block all but those that are below.
  uint i;
  [loop] for (uint set = 0; set * 4 < first; ++set) {
    uint former = set / SETS * BLOCK_SLOTS;
    KeySet others = LoadSet(start, end, former, set % SETS);
    others = ChooseKeys(former + SlotsOfSet(set % SETS) < before, BEST_KEY, others);
    [unroll] for (i = 0; i < 4; ++i) CountFormer(ranked, Splat(others, i));
  }
  // Within it by their places.
#define COUNT_SET(N) \
  [unroll] for (i = 0; i < 4; ++i) CountOwn(ranked, Splat(ranked.keys##N, i), SlotsOfSet(N)[i]);
  EACH_SET(COUNT_SET)
  // Of those behind it all that are above.
  [loop] for (uint later = first + BLOCK_SLOTS; later < end; later += BLOCK_SLOTS) {
    [loop] for (uint part = 0; part < SETS; ++part) {
      KeySet others = LoadSet(start, end, later, part);
      others = ChooseKeys(later + SlotsOfSet(part) >= end, WORST_KEY, others);
      [unroll] for (i = 0; i < 4; ++i) CountLater(ranked, Splat(others, i));
    }
  }

#define STORE(N) \
  StoreSet(place, ranked.keys##N, ranked.ranks##N, first + SlotsOfSet(N) - before);
  EACH_SET(STORE)
}

[numthreads(THREADS, 1, 1)]
void RankElements(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) {
    // Neighbouring lanes rank the same slots of neighbouring sequences, and then the next of these.
    uint sequence = unit / (c.block_count * c.runs) * c.runs + unit % c.runs;
    uint block = unit / c.runs % c.block_count;
    if (sequence < c.sequences) RankBlock(sequence, block * BLOCK_SLOTS);
  }
}
