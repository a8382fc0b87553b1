// top_k of short sequences: a group sorts one or more of them, however they lie in memory.
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKSortConstants
#include "include/top_k_records.hlsli"
#include "include/top_k_outputs.hlsli"
#define SORT_KEY BITS
#if IS_WIDE
#define SORT_CAPACITY TOP_K_WIDE_CAPACITY
#else
#define SORT_CAPACITY TOP_K_NARROW_CAPACITY
#endif
#define SORTS_BEFORE CandidateBefore
#include "include/bitonic_sort.hlsli"

Buffer<uint4> Input : register(t0);

groupshared uint row_inputs[TOP_K_MOST_ROWS];
groupshared uint row_values[TOP_K_MOST_ROWS];
groupshared uint row_indices[TOP_K_MOST_ROWS];

BITS LoadElement(uint row, uint index) {
  uint at = row_inputs[row] + index * c.element_stride;
  return ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
}

// Row and item of a place in the order that memory wants.
uint2 PlaceOf(uint i) {
  return c.goes_across != 0 ? uint2(i & ((1u << c.row_bits) - 1), i >> c.row_bits)
                            : uint2(i >> c.item_bits, i & ((1u << c.item_bits) - 1));
}

[numthreads(THREADS, 1, 1)]
void SortSequences(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint first = EnterGroup(group) << c.row_bits;
  uint rows = min(1u << c.row_bits, c.groups.unit_count - min(first, c.groups.unit_count));
  [loop] for (uint row = lane; row < rows; row += THREADS) {
    Offsets at = KeptOffsets(first + row);
    row_inputs[row] = instance.read0 * VECTOR_ELEMENTS + c.input_base + at.input;
    row_values[row] = at.output;
    row_indices[row] = at.index;
  }
  GroupMemoryBarrierWithGroupSync();
  uint count = 1u << (c.row_bits + c.item_bits);
  [loop] for (uint i = lane; i < count; i += THREADS) {
    uint2 place = PlaceOf(i);
    BITS key = (BITS)0;
    uint index = NO_INDEX;
    if (place.x < rows && place.y < c.length) {
      key = CandidateKeyOf(LoadElement(place.x, place.y));
      index = place.y;
    }
    uint slot = (place.x << c.item_bits) + place.y;
    sort_keys[slot] = key;
    sort_indices[slot] = index;
  }
  SortSegments(lane, count, c.item_bits);
  [loop] for (uint j = lane; j < count; j += THREADS) {
    uint2 place = PlaceOf(j);
    uint rank = place.y - c.ranks.first;
    if (place.x < rows && rank < c.ranks.count) {
      Candidate candidate;
      candidate.position = sort_indices[(place.x << c.item_bits) + place.y];
      candidate.bits = LoadElement(place.x, candidate.position);
      StoreResult(row_values[place.x], row_indices[place.x], rank, candidate);
    }
  }
}
