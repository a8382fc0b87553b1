// top_k: a group finds the k best items of its chunk of a sequence. It reads the chunk once, keeps the
// keys in registers, and puts the best into groupshared memory.
//   SOURCE, RESULT  top_k_constants.h
//   DIGIT_BITS      log2 of the words in groupshared memory: counts of digits, or candidates
//   MANY            1 if there may be more candidates than are compared with each other
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKChunkConstants
#include "include/top_k_items.hlsli"
#include "include/top_k_results.hlsli"
#define SORT_KEY BITS
#define SORT_CAPACITY (1 << DIGIT_BITS)
#define SORTS_BEFORE CandidateBefore
#include "include/bitonic_sort.hlsli"
#include "include/top_k_keys.hlsli"
#include "include/top_k_floor.hlsli"
#include "include/sum_lanes.hlsli"
#if !MANY
#include "include/top_k_rank.hlsli"
#elif !IS_WIDE
#include "include/top_k_buckets.hlsli"
#else
#include "include/top_k_sorted.hlsli"
#endif
// The memory of candidates.
#define HISTOGRAM sort_indices
#include "include/top_k_cut.hlsli"

groupshared uint shared_count;

// Stores a candidate, and counts it. If there are more than c.most, they overwrite each other.
void Collect(BITS key, uint index) {
  uint place;
  InterlockedAdd(shared_count, 1, place);
  place = min(place, c.most - 1);  // Microsoft's compiler rejects a condition here
  sort_keys[place] = key;
  sort_indices[place] = index;
}

// Collects what reaches the floor.
void CollectFrom(uint lane, Chunk chunk, Keys keys, Bests bests, BITS floor) {
  uint reaching = (KeyAbove(floor, bests.v0) ? 0 : 1) | (KeyAbove(floor, bests.v1) ? 0 : 2) |
                  (KeyAbove(floor, bests.v2) ? 0 : 4) | (KeyAbove(floor, bests.v3) ? 0 : 8);
  [loop] while (reaching != 0) {
    uint number = firstbitlow(reaching);
    reaching &= reaching - 1;
    uint4 from = VectorOf(keys, number);
    uint first = IndexOf(chunk, lane, number);
    [unroll] for (uint e = 0; e < VECTOR_KEYS; ++e) {
      BITS key = KeyOf(from, e);
      if (!KeyAbove(floor, key) && first + e < chunk.count) Collect(key, first + e);
    }
  }
}

// Counts the next digit of what is at the cut. What is not in the chunk is the last of all.
void CountDigit(uint lane, Chunk chunk, Keys keys, Cut cut, Digit digit) {
  [loop] for (uint number = 0; number < VECTORS; ++number) {
    uint4 v = VectorOf(keys, number);
    uint first = IndexOf(chunk, lane, number);
    EACH_KEY for (uint e = 0; e < VECTOR_KEYS; ++e) {
      ORDER order = OrderOf(EACH_KEY_OF(v, e), first + e);
      if (IsAt(cut, order)) InterlockedAdd(HISTOGRAM[DigitOf(cut, digit, order)], 1);
    }
  }
}

// Collects what is at the cut or above it.
void CollectAbove(uint lane, Chunk chunk, Keys keys, Cut cut) {
  [loop] for (uint number = 0; number < VECTORS; ++number) {
    uint4 v = VectorOf(keys, number);
    uint first = IndexOf(chunk, lane, number);
    EACH_KEY for (uint e = 0; e < VECTOR_KEYS; ++e) {
      BITS key = EACH_KEY_OF(v, e);
      if (first + e < chunk.count && IsAtOrAbove(cut, OrderOf(key, first + e))) {
        Collect(key, first + e);
      }
    }
  }
}

// Collects from k to c.most of the best items, or all of fewer; returns how many. If too many reach the
// floor, as they may if many are equal, or a floor is not worth it, a cut is found digit by digit.
uint CollectBest(uint lane, Chunk chunk, Keys keys) {
  uint collected = c.most + 1;  // too many to have been stored
  if (c.leaders > 0) {
    Bests bests = BestsOf(keys);
    StoreLeaders(lane, bests);
    GroupMemoryBarrierWithGroupSync();
    CountLeaders(lane);
    GroupMemoryBarrierWithGroupSync();
    ChoosePivot(lane);
    [loop] for (uint s = lane; s < c.most; s += THREADS) {
      sort_keys[s] = (BITS)0;
      sort_indices[s] = NO_INDEX;
    }
    if (lane == 0) shared_count = 0;
    GroupMemoryBarrierWithGroupSync();
    CollectFrom(lane, chunk, keys, bests, Floor());
    GroupMemoryBarrierWithGroupSync();
    collected = shared_count;
  }
  Cut cut = NoCut();
  Digit digit = {0, FIRST_SHIFT};
  uint above = 0;
  uint left = chunk.count;
  [loop] while (collected > c.most) {
    bool collects = left <= c.most;
    GroupMemoryBarrierWithGroupSync();
    [loop] for (uint s = lane; s < SORT_CAPACITY; s += THREADS) {
      sort_keys[s] = (BITS)0;
      sort_indices[s] = collects ? NO_INDEX : 0;  // candidates, or counts
    }
    if (lane == 0) shared_count = 0;
    GroupMemoryBarrierWithGroupSync();
    if (collects) {
      CollectAbove(lane, chunk, keys, cut);
    } else {
      CountDigit(lane, chunk, keys, cut, digit);
    }
    GroupMemoryBarrierWithGroupSync();
    if (collects) break;
    uint3 value = FindDigit(lane, c.ranks.k - above);
    left = above + value.y + value.z;
    cut = Deepen(cut, digit, value.x);
    digit = Next(digit);
    above += value.y;
  }
  return shared_count;
}

[numthreads(THREADS, 1, 1)]
void SelectBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint sequence = flat / c.chunks;
  uint number = flat % c.chunks;
  uint begin = number * c.chunk_length;
  Chunk chunk = {FirstItem(sequence) + begin, min(c.chunk_length, c.items.length - begin)};
  uint count = CollectBest(lane, chunk, LoadKeys(lane, chunk));
  RankCandidates(lane, count);
  RESULT_PLACE to = PlaceOfResults(sequence, number);
  [loop] for (uint s = lane; s < count; s += THREADS) {
    uint rank = RankOf(s) - c.ranks.first;
    if (rank < c.ranks.count) {
      StoreRank(to, rank, LoadItem(chunk.first - begin, begin + sort_indices[s]));
    }
  }
}
