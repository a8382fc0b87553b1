// top_k: sorted lists into the operator's two outputs.
//   INDEX_WIDE  1 for 64-bit indices
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKWriteConstants
#define SHORT_WALKS 1
#include "include/top_k_candidates.hlsli"
#include "include/top_k_results.hlsli"

void WriteResult(uint unit) {
  uint rank = unit % c.rank_count;
  uint sequence = unit / c.rank_count;
  uint record = instance.read1 + c.list_stride * sequence + c.first_rank + rank;
  Candidate candidate = FromRecord(List[record]);
  // Of several parts, that which has the element.
  if (candidate.position - c.part.first_position < c.part.length) {
    StoreResult(KeptOffsets(sequence), rank, candidate.key, candidate.position);
  }
}

[numthreads(THREADS, 1, 1)]
void WriteResults(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) WriteResult(unit);
}
