// top_k by a radix sort of all items: moves each to its place by a digit, the largest first. Items of
// equal digits stay in their order.
//   SOURCE, RESULT  top_k_constants.h
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKChunkConstants
#include "include/top_k_items.hlsli"
#include "include/top_k_results.hlsli"
#include "include/top_k_digit.hlsli"

Buffer<uint> Counts : register(t1);  // top_k_count.hlsl

bool DigitBefore(uint a, uint a_index, uint b, uint b_index) {
  return a > b || (a == b && a_index < b_index);
}

#define SORT_KEY uint
#define SORT_CAPACITY TOP_K_NARROW_CAPACITY
#define SORTS_BEFORE DigitBefore
#include "include/bitonic_sort.hlsli"
#include "include/sum_lanes.hlsli"

groupshared uint places[TOP_K_DIGITS];  // of the next item with a digit, in the sorted sequence
groupshared uint starts[TOP_K_DIGITS];  // of the items with a digit, in the tile

#define LANE_DIGITS (THREADS < TOP_K_DIGITS ? TOP_K_DIGITS / THREADS : 1)

// Where the chunk's items of each digit go: after those of larger digits, and of the chunks before.
void FindPlaces(uint lane, uint sequence, uint chunk) {
  uint of_sequence = sequence * TOP_K_DIGITS;
  uint counts = instance.read1 + of_sequence * c.all_chunks + c.first_chunk + chunk;
  uint sequences = c.groups.unit_count / c.chunks;
  uint totals = instance.read1 + sequences * TOP_K_DIGITS * c.all_chunks + of_sequence;
  uint first = TOP_K_DIGITS - 1 - lane * LANE_DIGITS;  // and those below; none of the last lanes
  uint own = 0;
  [unroll] for (uint i = 0; i < LANE_DIGITS; ++i) {
    if (first - i < TOP_K_DIGITS) own += Counts[totals + first - i];
  }
  uint place = SumBefore(lane, own);
  [unroll] for (uint p = 0; p < LANE_DIGITS; ++p) {
    uint digit = first - p;
    if (digit < TOP_K_DIGITS) {
      places[digit] = place + Counts[counts + digit * c.all_chunks];
      place += Counts[totals + digit];
    }
  }
  GroupMemoryBarrierWithGroupSync();
}

[numthreads(THREADS, 1, 1)]
void ScatterItems(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint sequence = flat / c.chunks;
  uint chunk = flat % c.chunks;
  uint first = FirstItem(sequence);
  uint begin = chunk * c.chunk_length;
  uint end = min(begin + c.chunk_length, c.items.length);
  RESULT_PLACE to = PlaceOfResults(sequence, 0);
  FindPlaces(lane, sequence, chunk);
  [loop] for (uint tile = begin; tile < end; tile += SORT_CAPACITY) {
    uint count = min(SORT_CAPACITY, end - tile);
    uint bits = SegmentBits(count);
    [loop] for (uint i = lane; i < 1u << bits; i += THREADS) {
      bool is_item = i < count;
      uint digit = DigitOf(LoadItem(first, min(tile + i, end - 1)));
      sort_keys[i] = is_item ? digit : 0;
      sort_indices[i] = is_item ? i : NO_INDEX;
    }
    SortSegments(lane, 1u << bits, bits);
    [loop] for (uint s = lane; s < count; s += THREADS) {
      uint digit = sort_keys[s];
      if (s == 0 || sort_keys[max(s, 1) - 1] != digit) starts[digit] = s;
    }
    GroupMemoryBarrierWithGroupSync();
    [loop] for (uint j = lane; j < count; j += THREADS) {
      uint digit = sort_keys[j];
      uint rank = places[digit] + j - starts[digit] - c.ranks.first;
      if (rank < c.ranks.count) StoreRank(to, rank, LoadItem(first, tile + sort_indices[j]));
    }
    GroupMemoryBarrierWithGroupSync();
    [loop] for (uint e = lane; e < count; e += THREADS) {
      uint digit = sort_keys[e];
      if (e + 1 == count || sort_keys[min(e + 1, count - 1)] != digit) {
        places[digit] += e + 1 - starts[digit];
      }
    }
    GroupMemoryBarrierWithGroupSync();
  }
}
