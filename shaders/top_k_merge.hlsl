// top_k: merges of sorted runs in pairs.
//   STORES_WORDS  how lists are written: records.hlsli
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKMergeConstants
#include "include/top_k_candidates.hlsli"

// Records of a run that holds the run_length best of its run_elements elements, the last ones fewer.
uint RunLength(uint run, uint count) {
  uint first = run * c.run_elements;
  return first < count ? min(min(count - first, c.run_elements), c.run_length) : 0;
}

Candidate RunAt(uint run_start, uint item, uint length) {
  Candidate candidate = NoCandidate();
  if (item < length) candidate = FromRecord(List[run_start + item]);
  return candidate;
}

void MergeChunk(uint unit) {
  uint chunks = (c.merged_length + TOP_K_MERGE_CHUNK - 1) / TOP_K_MERGE_CHUNK;
  uint first = (unit % chunks) * TOP_K_MERGE_CHUNK;
  uint merged = (unit / chunks) % c.merged_count;
  uint sequence = unit / chunks / c.merged_count;

  uint count = c.list_length;
  if (c.counted != 0) count = min(count, CountOf(sequence));
  uint a_length = RunLength(merged * 2, count);
  uint b_length = RunLength(merged * 2 + 1, count);
  uint end = min(min(first + TOP_K_MERGE_CHUNK, a_length + b_length), c.merged_length);
  uint a_start = instance.read1 + sequence * c.list_stride +
                 merged * 2 * c.run_length;
  uint b_start = a_start + c.run_length;

  // How many of the first `first` merged records come from run a.
  uint low = first > b_length ? first - b_length : 0;
  uint high = first < end ? min(first, a_length) : low;
  [loop] while (low < high) {
    uint middle = (low + high) / 2;
    if (Before(RunAt(a_start, middle, a_length),
               RunAt(b_start, first - 1 - middle, b_length))) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  uint a_item = low;
  uint b_item = first - low;
  Candidate a = RunAt(a_start, a_item, a_length);
  Candidate b = RunAt(b_start, b_item, b_length);
  uint out_start = sequence * c.record_stride + merged * c.merged_length;
  // One load and one store per step for either run: software devices run both sides of a branch.
  [loop] for (uint rank = first; rank < end; ++rank) {
    bool from_a = Before(a, b);
    Candidate best = Choose(from_a, a, b);
    StoreCandidate(out_start + rank, best);
    a_item += from_a ? 1 : 0;
    b_item += from_a ? 0 : 1;
    bool more = from_a ? a_item < a_length : b_item < b_length;
    uint at = from_a ? a_start + a_item : b_start + b_item;
    Candidate next = FromRecord(List[more ? at : a_start]);
    next = Choose(more, next, NoCandidate());
    a = Choose(from_a, next, a);
    b = Choose(from_a, b, next);
  }
}

[numthreads(THREADS, 1, 1)]
void MergeRuns(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) MergeChunk(unit);
}
