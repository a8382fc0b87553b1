// top_k by radix selection: a group finds the k best items of its chunk of a sequence.
//   SOURCE, RESULT  top_k_constants.h
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKSelectConstants
#include "include/top_k_items.hlsli"
#if RESULT != RESULT_RECORDS
#include "include/top_k_outputs.hlsli"
#else
RWBuffer<RECORD> Records : register(u0);
#endif
#define SORT_KEY BITS
#define SORT_WORDS KEY_WORDS
#define SORT_CAPACITY CAPACITY
#define SORTS_BEFORE CandidateBefore
#include "include/bitonic_sort.hlsli"
// The memory of a later sort.
#define HISTOGRAM(bin) sort_words[bin]
#include "include/top_k_cut.hlsli"

// Loads of a lane in flight at a time, and the items of each.
#if SOURCE == SOURCE_RECORDS
#define LOADED RECORD
#define LOADS 4
#define LOAD_ITEMS 1
#else
#define LOADED uint4
#define LOADS 2
#define LOAD_ITEMS VECTOR_ELEMENTS
#endif

struct Chunk {
  uint first;  // the first item, in the view of t0
  uint count;  // items
};

groupshared uint shared_count;

// Counts the next digit of an item at the cut, or collects one at or above it.
void Take(Cut cut, Digit digit, bool collects, BITS key, uint index) {
  if (!IsAtOrAbove(cut, key, index)) return;
  if (collects) {
    uint place;
    InterlockedAdd(shared_count, 1, place);
#if RESULT == RESULT_RECORDS
    key = (BITS)0;  // they are sorted by their indices
#endif
    StoreSortKey(place, key);
    sort_indices[place] = index;
  } else if (IsAt(cut, key, index)) {
    InterlockedAdd(HISTOGRAM(DigitOf(cut, digit, key, index)), 1);
  }
}

void Walk(uint lane, Chunk chunk, Cut cut, Digit digit, bool collects) {
  uint before = chunk.first % LOAD_ITEMS;
  uint first = chunk.first / LOAD_ITEMS;
  uint loads = (before + chunk.count + LOAD_ITEMS - 1) / LOAD_ITEMS;
  [loop] for (uint at = lane; at < loads; at += LOADS * THREADS) {
    LOADED loaded[LOADS];
    [unroll] for (uint u = 0; u < LOADS; ++u) {
      loaded[u] = Input[first + min(at + u * THREADS, loads - 1)];
    }
    [unroll] for (uint w = 0; w < LOADS; ++w) {
      BITS bits[LOAD_ITEMS];
#if SOURCE == SOURCE_RECORDS
      bits[0] = FromRecord(loaded[w]).bits;
#else
      UnpackVector(loaded[w], bits);
#endif
      [unroll] for (uint e = 0; e < LOAD_ITEMS; ++e) {
        uint index = (at + w * THREADS) * LOAD_ITEMS + e - before;
        if (index < chunk.count) Take(cut, digit, collects, CandidateKeyOf(bits[e]), index);
      }
    }
  }
}

// Finds a cut that leaves from k to c.most items of the chunk, and collects these for a sort; returns
// how many. Each round of the loop walks over the chunk, the last one to collect.
uint CollectBest(uint lane, Chunk chunk) {
  Cut cut = NoCut();
  Digit digit = {0, FIRST_SHIFT};
  uint above = 0;
  uint left = chunk.count;
  [loop] while (true) {
    bool collects = left <= c.most;
    // For counts and for items, since Microsoft's compiler takes no branch in this loop for uniform.
    [loop] for (uint i = lane; i < TOP_K_BINS; i += THREADS) HISTOGRAM(i) = 0;
    [loop] for (uint s = lane; s < SORT_CAPACITY; s += THREADS) sort_indices[s] = NO_INDEX;
    if (lane == 0) shared_count = 0;
    GroupMemoryBarrierWithGroupSync();
    Walk(lane, chunk, cut, digit, collects);
    GroupMemoryBarrierWithGroupSync();
    if (collects) break;
    uint3 value = FindDigit(lane, c.ranks.k - above);
    left = above + value.y + value.z;
    cut = Deepen(cut, digit, value.x);
    digit = Next(digit);
    above += value.y;
  }
  return left;
}

[numthreads(THREADS, 1, 1)]
void SelectBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint sequence = flat / c.chunks;
  uint number = flat % c.chunks;
  uint begin = number * c.chunk_length;
  Chunk chunk = {FirstItem(sequence) + begin, min(c.chunk_length, c.items.length - begin)};
  uint left = CollectBest(lane, chunk);
  uint bits = SegmentBits(left);
  SortSegments(lane, 1u << bits, bits);

#if RESULT == RESULT_RECORDS
  uint to = instance.write0 + c.first_record + sequence * c.record_stride + number * c.ranks.k;
  [loop] for (uint r = lane; r < left; r += THREADS) {
    Records[to + r] = ToRecord(LoadItem(FirstItem(sequence), begin + sort_indices[r]));
  }
#else
  Offsets at = KeptOffsets(sequence);
  [loop] for (uint r = lane; r < c.ranks.count; r += THREADS) {
    Candidate candidate = LoadItem(FirstItem(sequence), begin + sort_indices[c.ranks.first + r]);
    StoreResult(at.output, at.index, r, candidate);
  }
#endif
}
