// top_k by a cut that the best blocks lie above, and, where the elements above it (top_k_collect.hlsl)
// are many more than k, fewer of them.
//   LAYOUT               how sequences lie in memory: LAYOUT_*
//   ALONE, STORES_WORDS  see top_k_selection.hlsli
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKSelectConstants
#include "include/top_k_key.hlsli"
#include "include/top_k_selection.hlsli"
#include "include/top_k_work.hlsli"

Buffer<uint4> Input : register(t0);  // candidates
Buffer<uint4> Keys : register(t1);
#define BLOCK_KEYS Keys
#include "include/top_k_block_keys.hlsli"

#if IS_WIDE
#define ORDER_BITS 96
#else
#define ORDER_BITS 64
#endif

Cut Raise(Cut cut, uint digit, uint shift) {
  if (shift < 32) {
    cut.tail += digit << shift;
  } else {
#if IS_WIDE
    if (shift < 64) {
      cut.key.x += digit << (shift - 32);
    } else {
      cut.key.y += digit << (shift - 64);
    }
#else
    cut.key += digit << (shift - 32);
#endif
  }
  return cut;
}

// Three cuts at a time.
struct Cuts {
  Cut low;
  Cut middle;
  Cut high;
};

uint3 CountOne(BITS key, uint position, Cuts cuts) {
  return uint3((uint)IsAbove(key, position, cuts.low), (uint)IsAbove(key, position, cuts.middle),
               (uint)IsAbove(key, position, cuts.high));
}

#if ALONE
#define SEARCHERS 1
#else
#define SEARCHERS THREADS
groupshared uint shared_counts[3];
#endif

// Who searches what.
struct Search {
  uint sequence;
  uint lane;     // below SEARCHERS
  bool is_real;  // false: only goes along
};

Search EnterSearch(uint3 group, uint lane) {
  Search search;
#if ALONE
  uint unit = EnterGroup(group) * THREADS + lane;
  search.is_real = unit < c.sequences;
  search.sequence = min(unit, c.sequences - 1);
  search.lane = 0;
#else
  search.sequence = EnterSequence(group, search.is_real);
  search.lane = lane;
#endif
  return search;
}

uint3 CountKeys(uint lane, uint base, Cuts cuts) {
  uint3 counts = (uint3)0;
  [loop] for (uint block = lane * KEY_STEP; block < c.keys.length; block += SEARCHERS * KEY_STEP) {
    uint4 v = LoadKeys(base, block);
    [unroll] for (uint i = 0; i < KEY_STEP; ++i) {
      counts += CountOne(KeyOfStep(v, i), block + i, cuts);
    }
  }
  return counts;
}

uint3 CountCandidates(uint lane, uint base, uint count, Cuts cuts) {
  uint3 counts = (uint3)0;
#if ALONE
  [loop] for (uint i = 0; i < count; i += 4) {
    Quad quad;
    LOAD_QUAD(quad, Input, base, i)
    [unroll] for (uint u = 0; u < 4; ++u) {
      uint3 counted = CountOne(QuadKey(quad, u), quad.position[u], cuts);
      counts += i + u < count ? counted : (uint3)0;
    }
  }
#else
  [loop] for (uint i = lane; i < count; i += SEARCHERS) {
    uint4 record = Input[base + i];
    counts += CountOne(RecordKey(record), record.z, cuts);
  }
#endif
  return counts;
}

// Of all searchers. Through the group's memory, so that all compilers see lanes agree.
uint3 SumCounts(uint lane, uint3 counts) {
#if !ALONE
  if (lane < 3) shared_counts[lane] = 0;
  GroupMemoryBarrierWithGroupSync();
  InterlockedAdd(shared_counts[0], counts.x);
  InterlockedAdd(shared_counts[1], counts.y);
  InterlockedAdd(shared_counts[2], counts.z);
  GroupMemoryBarrierWithGroupSync();
  counts = uint3(shared_counts[0], shared_counts[1], shared_counts[2]);
  GroupMemoryBarrierWithGroupSync();
#endif
  return counts;
}

// A cut with `wanted` to `most` of `count` items above it, blocks or candidates; none where they are
// no more. Two binary digits a round; every searcher finds the same.
Cut FindCutOf(bool blocks, uint lane, uint base, uint count, uint wanted, uint most) {
  Cut cut;
  cut.key = (BITS)0;
  cut.tail = 0;
  uint above = SumCounts(lane, uint3(lane == 0 ? count : 0, 0, 0)).x;
  uint shift = ORDER_BITS;
  [loop] while (shift > 0 && above > most) {
    shift -= 2;
    Cuts cuts;
    cuts.low = Raise(cut, 1, shift);
    cuts.middle = Raise(cut, 2, shift);
    cuts.high = Raise(cut, 3, shift);
    uint3 counts;
    if (blocks) {
      counts = CountKeys(lane, base, cuts);
    } else {
      counts = CountCandidates(lane, base, count, cuts);
    }
    counts = SumCounts(lane, counts);
    uint digit = 0;
    [unroll] for (uint i = 0; i < 3; ++i) {
      if (counts[i] >= wanted) {
        digit = i + 1;
        above = counts[i];
      }
    }
    cut = Raise(cut, digit, shift);
  }
  return cut;
}

// Of a sequence: k best blocks, or a few more where that ends the search early.
[numthreads(THREADS, 1, 1)]
void FindCut(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Search search = EnterSearch(group, lane);
  uint base = KeyBase(search.sequence);
  Cut cut = FindCutOf(true, search.lane, base, c.keys.length, c.k, c.most);
  if (search.is_real && search.lane == 0) {
    uint at = HeaderOf(search.sequence);
    Headers[at + COUNT_AT] = 0;
    Headers[at + IS_TAKEN_AT] = 0;
    Headers[at + IS_SPREAD_AT] = 0;
    Headers[at + TAIL_AT] = cut.tail;
#if IS_WIDE
    Headers[at + KEY_AT] = cut.key.x;
    Headers[at + KEY_AT + 1] = cut.key.y;
#else
    Headers[at + KEY_AT] = cut.key;
#endif
  }
}

#if !ALONE
groupshared uint shared_taken;
#endif

// Stores the candidates above the cut, and returns how many there are.
uint Take(uint lane, uint base, uint count, Cut cut, uint list) {
  uint taken = 0;
#if ALONE
  [loop] for (uint i = 0; i < count; i += 4) {
    Quad quad;
    LOAD_QUAD(quad, Input, base, i)
    [unroll] for (uint u = 0; u < 4; ++u) {
      BITS key = QuadKey(quad, u);
      uint position = quad.position[u];
      if (i + u < count && IsAbove(key, position, cut)) {
        StoreCandidate(list, taken, key, position);
        ++taken;
      }
    }
  }
#else
  if (lane == 0) shared_taken = 0;
  GroupMemoryBarrierWithGroupSync();
  [loop] for (uint i = lane; i < count; i += SEARCHERS) {
    uint4 record = Input[base + i];
    if (IsAbove(RecordKey(record), record.z, cut)) {
      uint place;
      InterlockedAdd(shared_taken, 1, place);
      StoreCandidate(list, place, RecordKey(record), record.z);
    }
  }
  GroupMemoryBarrierWithGroupSync();
  taken = shared_taken;
#endif
  return taken;
}

// Of a sequence with more than c.most candidates, k to c.most of the best. Fewer stay where they are.
[numthreads(THREADS, 1, 1)]
void TakeBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Search search = EnterSearch(group, lane);
  uint header = HeaderOf(search.sequence);
  uint count = Headers[header + COUNT_AT];
  uint base = instance.read0 + search.sequence * c.candidate_stride;
  Cut cut = FindCutOf(false, search.lane, base, count, c.k, c.most);
  bool takes = search.is_real && count > c.most;
  uint taken = Take(search.lane, base, takes ? count : 0, cut, search.sequence * c.taken_stride);
  if (takes && search.lane == 0) {
    Headers[header + COUNT_AT] = taken;
    Headers[header + IS_TAKEN_AT] = 1;
  }
}
