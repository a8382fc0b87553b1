// top_k of short sequences: an element's rank is how many of its sequence come before it. A lane
// counts that for 16 elements at a time, and writes those whose ranks are wanted. Nothing is sorted.
//   LARGEST     1 when the largest element comes first
//   LAYOUT      how sequences lie in memory: LAYOUT_ROWS, LAYOUT_STRIDED
//   INDEX_WIDE  1 for 64-bit indices
#include "include/top_k_results.hlsli"

// Slots: a sequence's elements, and before the first of them what else its first vector holds.
#define BLOCK_SLOTS 16
#define SETS (BLOCK_SLOTS / 4)

// Keys of four slots, as numbers with a sign, which every processor compares.
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
  keys.key = (int4)(uint4(k0.y, k1.y, k2.y, k3.y) ^ 0x80000000u);
  keys.low = (int4)(uint4(k0.x, k1.x, k2.x, k3.x) ^ 0x80000000u);
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
  keys.key = (int4)(FoldNans(RawKeysOf(words)) ^ 0x80000000u);
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

void RankBlock(uint sequence, uint first) {
  Offsets place = KeptOffsets(sequence);
  uint start = FirstElement(place.input);
  uint before = SlotsBefore(start);
  start -= before;
  uint end = before + c.list_length;

  // Slots before the first element count as if they came before all, which is taken off here; those
  // behind the last count for nothing.
  KeySet keys[SETS];
  uint4 ranks[SETS];
  uint q;
  [unroll] for (q = 0; q < SETS; ++q) {
    uint4 slots = first + SlotsOfSet(q);
    keys[q] = ChooseKeys(slots >= end, WORST_KEY, LoadSet(start, end, first, q));
    keys[q] = ChooseKeys(slots < before, BEST_KEY, keys[q]);
    ranks[q] = first - before;
  }

  // Of elements before the block all that none of it is above.
  [loop] for (uint set = 0; set * 4 < first; ++set) {
    KeySet others = LoadSet(start, end, set / SETS * BLOCK_SLOTS, set % SETS);
    uint4 slots = set / SETS * BLOCK_SLOTS + SlotsOfSet(set % SETS);
    others = ChooseKeys(slots < before, BEST_KEY, others);
    [unroll] for (uint i = 0; i < 4; ++i) {
      [unroll] for (q = 0; q < SETS; ++q) ranks[q] -= CountAbove(keys[q], Splat(others, i));
    }
  }
  // Within it by their places.
  [unroll] for (uint own = 0; own < SETS; ++own) {
    [unroll] for (uint j = 0; j < 4; ++j) {
      KeySet other = Splat(keys[own], j);
      [unroll] for (q = 0; q < SETS; ++q) {
        ranks[q] += CountAbove(other, keys[q]) |
                    (CountEqual(other, keys[q]) & (uint4)(SlotsOfSet(own)[j] < SlotsOfSet(q)));
      }
    }
  }
  // Of those behind it all that are above.
  [loop] for (uint later = first + BLOCK_SLOTS; later < end; later += BLOCK_SLOTS) {
    [loop] for (uint part = 0; part < SETS; ++part) {
      KeySet others = LoadSet(start, end, later, part);
      others = ChooseKeys(later + SlotsOfSet(part) >= end, WORST_KEY, others);
      [unroll] for (uint i = 0; i < 4; ++i) {
        [unroll] for (q = 0; q < SETS; ++q) ranks[q] += CountAbove(Splat(others, i), keys[q]);
      }
    }
  }

  [unroll] for (q = 0; q < SETS; ++q) {
    [unroll] for (uint i = 0; i < 4; ++i) {
      uint position = first + SlotsOfSet(q)[i] - before;
      [branch] if (position < c.list_length && ranks[q][i] < c.k) {
        StoreResult(place, ranks[q][i], KeyOfSet(keys[q], i), c.index_base + position);
      }
    }
  }
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
