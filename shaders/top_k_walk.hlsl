// top_k of a few: a lane walks a chunk of a sequence, however its items lie in memory, and keeps the best in
// registers.
//   SOURCE, RESULT  top_k_constants.h
//   BEST_COUNT      how many it keeps
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKChunkConstants
#include "include/top_k_items.hlsli"
#include "include/top_k_results.hlsli"

#define LOADS 4  // in flight at a time

// What is kept of an item: its key and its index, or short keys above inverted indices in one word.
#if ELEMENT_BITS > 16
#define BEST_WORD(key, index) (key)
#define BEST_INDEX(rank) indices[rank]
#else
#define BEST_WORD(key, index) ((key) << 16 | (0xFFFF - (index)))
#define BEST_INDEX(rank) (0xFFFF - (words[rank] & 0xFFFF))
#endif

[numthreads(THREADS, 1, 1)]
void WalkChunks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group) * THREADS + lane;
  if (flat >= c.groups.unit_count) return;
  // Adjacent lanes take adjacent sequences.
  uint sequences = c.groups.unit_count / c.chunks;
  uint sequence = flat % sequences;
  uint chunk = flat / sequences;
  uint begin = chunk * c.chunk_length;
  uint count = min(c.chunk_length, c.items.length - begin);
  uint start = FirstItem(sequence);
  uint first = start + begin * ITEM_STRIDE;
  // How many items of a load belong to the sequence: all if its items are adjacent, else one. The first
  // load may begin before the chunk. The compiler does not see that it is one of records, so that it
  // does not complain of a loop with one turn.
  uint used = (ITEM_STRIDE == 1 ? LOADED_ITEMS : 1) + c.groups.zero;
  uint skipped = first % used;
  uint step = used * ITEM_STRIDE;
  uint last = (skipped + count - 1) / used;
  // Walks backwards and puts each item before those with equal keys, so ties go to the smaller index. The
  // initial zeros stay last, even behind items whose key is 0.
  BITS words[BEST_COUNT];
  uint indices[BEST_COUNT];
  [unroll] for (uint n = 0; n < BEST_COUNT; ++n) {
    words[n] = (BITS)0;
    indices[n] = 0;
  }
  [loop] for (uint left = last + 1; left > 0; left -= min(left, LOADS)) {
    LOADED loaded[LOADS];
    [unroll] for (uint u = 0; u < LOADS; ++u) {
      loaded[u] = Input[(first - skipped + min(left - 1 - u, last) * step) / LOADED_ITEMS];
    }
    [unroll] for (uint v = 0; v < LOADS; ++v) {
      [loop] for (uint e = used; e > 0; --e) {
        uint index = (left - 1 - v) * used + e - 1 - skipped;  // past the count, if there is none
        BITS key = CandidateKeyOf(BitsOf(loaded[v], first + index * ITEM_STRIDE));
        BITS word = BEST_WORD(key, index);
        bool goes_in = !KeyAbove(words[BEST_COUNT - 1], word);  // before rank j, or in its place
        [branch] if (index < count && goes_in) {
          [unroll] for (uint j = BEST_COUNT - 1; j > 0; --j) {
            bool is_before = !KeyAbove(words[j - 1], word);
            indices[j] = is_before ? indices[j - 1] : goes_in ? index : indices[j];
            words[j] = !IS_WIDE    ? max(words[j], min(word, words[j - 1]))
                       : is_before ? words[j - 1]
                       : goes_in   ? word
                                   : words[j];
            goes_in = is_before;
          }
          indices[0] = goes_in ? index : indices[0];
          words[0] = goes_in ? word : words[0];
        }
      }
    }
  }
  RESULT_PLACE to = PlaceOfResults(sequence, chunk);
  [unroll] for (uint r = 0; r < BEST_COUNT; ++r) {
    uint rank = r - c.ranks.first;
    if (r < count && rank < c.ranks.count) {
      StoreRank(to, rank, LoadItem(start, begin + BEST_INDEX(r)));
    }
  }
}
