// Sorts candidates in groupshared memory by a bitonic network: the largest key first, of equal keys
// the smallest index. No two indices of a segment are equal.
//   SORT_CAPACITY  candidates that there is room for; a power of two
//   SORT_KEY       the type of keys
//   SORTS_BEFORE   the order: (key, index, key, index)

groupshared SORT_KEY sort_keys[SORT_CAPACITY];
groupshared uint sort_indices[SORT_CAPACITY];

#define NO_INDEX 0xFFFFFFFFu  // the last of all, with a key of 0

// Exchanges two candidates if the second one comes first.
void Exchange(uint a, uint b) {
  SORT_KEY a_key = sort_keys[a];
  SORT_KEY b_key = sort_keys[b];
  uint a_index = sort_indices[a];
  uint b_index = sort_indices[b];
  if (SORTS_BEFORE(b_key, b_index, a_key, a_index)) {
    sort_keys[a] = b_key;
    sort_keys[b] = a_key;
    sort_indices[a] = b_index;
    sort_indices[b] = a_index;
  }
}

// Sorts each segment of 2^bits of the first `count` candidates. All lanes call it, with equal
// arguments; it begins and ends with a barrier.
void SortSegments(uint lane, uint count, uint bits) {
  [loop] for (uint size = 1; size <= bits; ++size) {
    [loop] for (uint step = size; step > 0; --step) {
      GroupMemoryBarrierWithGroupSync();
      uint low_bits = (1u << (step - 1)) - 1;
      // The first step pairs the candidates of two sorted halves from both ends.
      uint partner = step == size ? (1u << size) - 1 : 1u << (step - 1);
      [loop] for (uint pair = lane; pair < count / 2; pair += THREADS) {
        uint a = pair * 2 - (pair & low_bits);
        Exchange(a, a ^ partner);
      }
    }
  }
  GroupMemoryBarrierWithGroupSync();
}

// The bits of the smallest segment with room for `count` candidates.
uint SegmentBits(uint count) {
  uint bits = 0;
  [loop] while ((1u << bits) < count) ++bits;
  return bits;
}
