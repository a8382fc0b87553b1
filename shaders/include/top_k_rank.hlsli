// The ranks of few candidates: how many others come before each. Without the barriers of a sort.

#define RANKS_AT (SORT_CAPACITY / 2)  // in sort_indices; candidates are below
#define RANK_STEP 4  // candidates that a lane compares at a time

// All lanes call it, with equal arguments, after a barrier; it ends with one. Slots that have no
// candidate, up to the next power of two, have a key of 0 and NO_INDEX.
void RankCandidates(uint lane, uint count) {
  [loop] for (uint s = lane; s < count; s += THREADS) sort_indices[RANKS_AT + s] = 0;
  GroupMemoryBarrierWithGroupSync();
  // Lanes compare their candidate with a part of the others.
  uint bits = max(SegmentBits(count), 2);
  uint parts = max(min(THREADS >> bits, (1u << bits) / RANK_STEP), 1);
  uint length = (1u << bits) / parts;
  uint part = lane >> bits;
  uint begin = part * length;
  uint end = part < parts ? min(begin + length, count) : 0;
  [loop] for (uint i = lane & ((1u << bits) - 1); i < count; i += THREADS) {
    BITS key = sort_keys[i];
    uint index = sort_indices[i];
    uint before = 0;
    [loop] for (uint other = begin; other < end; other += RANK_STEP) {
      [unroll] for (uint u = 0; u < RANK_STEP; ++u) {
        before += SORTS_BEFORE(sort_keys[other + u], sort_indices[other + u], key, index) ? 1 : 0;
      }
    }
    InterlockedAdd(sort_indices[RANKS_AT + i], before);
  }
  GroupMemoryBarrierWithGroupSync();
}

uint RankOf(uint candidate) { return sort_indices[RANKS_AT + candidate]; }
