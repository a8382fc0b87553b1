// top_k of a few: a lane walks a chunk of a sequence, however its items lie in memory, and keeps the best in
// registers.
//   SOURCE, RESULT  top_k_constants.h
//   KEPT            how many it keeps
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKSelectConstants
#include "include/top_k_items.hlsli"
#include "include/top_k_best.hlsli"

#define LOADS 4  // in flight at a time

// What is kept of an item: its key and its index, or short keys above inverted indices in one word.
#if ELEMENT_BITS > 16
#define WORD_OF(key, index) (key)
#define INDEX_OF_KEPT(rank) indices[rank]
#else
#define WORD_OF(key, index) ((key) << 16 | (0xFFFF - (index)))
#define INDEX_OF_KEPT(rank) (0xFFFF - (words[rank] & 0xFFFF))
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
  uint first = FirstItem(sequence) + begin * ITEM_STRIDE;
  // Items that are used of what a load brings; of the first one, some are before the chunk. The compiler
  // does not know that it is 1 for records, and complains of no loop with one turn.
  uint used = (ITEM_STRIDE == 1 ? LOADED_ITEMS : 1) + c.groups.zero;
  uint skipped = first % used;
  uint step = used * ITEM_STRIDE;
  uint last = (skipped + count - 1) / used;
  // The walk goes backwards, so that each item comes before those that are equal to it, also before the
  // keys of nothing.
  uint words[KEPT];
  uint indices[KEPT];
  [unroll] for (uint n = 0; n < KEPT; ++n) words[n] = indices[n] = 0;
  [loop] for (uint left = last + 1; left > 0; left -= min(left, LOADS)) {
    LOADED loaded[LOADS];
    [unroll] for (uint u = 0; u < LOADS; ++u) {
      loaded[u] = Input[(first - skipped + min(left - 1 - u, last) * step) / LOADED_ITEMS];
    }
    [unroll] for (uint v = 0; v < LOADS; ++v) {
      [loop] for (uint e = used; e > 0; --e) {
        uint index = (left - 1 - v) * used + e - 1 - skipped;  // past the count, if there is none
        uint key = CandidateKeyOf(BitsOf(loaded[v], first + index * ITEM_STRIDE));
        uint word = WORD_OF(key, index);
        [branch] if (index < count && word >= words[KEPT - 1]) {
          [unroll] for (uint j = KEPT - 1; j > 0; --j) {
            indices[j] = word >= words[j - 1] ? indices[j - 1] : word >= words[j] ? index : indices[j];
            words[j] = max(words[j], min(word, words[j - 1]));
          }
          indices[0] = word >= words[0] ? index : indices[0];
          words[0] = max(words[0], word);
        }
      }
    }
  }
  BEST_PLACE to = PlaceOfBest(sequence, chunk);
  [unroll] for (uint r = 0; r < KEPT; ++r) {
    uint rank = r - c.ranks.first;
    if (r < count && rank < c.ranks.count) {
      StoreBest(to, rank, LoadItem(FirstItem(sequence), begin + INDEX_OF_KEPT(r)));
    }
  }
}
