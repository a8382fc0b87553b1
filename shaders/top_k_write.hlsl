// top_k: sorted records into the operator's two outputs.
//   RESULT  top_k_constants.h
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKWriteConstants
#include "include/top_k_records.hlsli"
#include "include/top_k_outputs.hlsli"

Buffer<RECORD> Records : register(t0);

[numthreads(THREADS, 1, 1)]
void WriteResults(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint sequence = flat / c.blocks;
  uint begin = flat % c.blocks * c.block_length;
  uint end = min(begin + c.block_length, c.rank_count);
  Offsets at = KeptOffsets(sequence);
  uint from = instance.read0 + c.first_record + sequence * c.list_stride;
  [loop] for (uint rank = begin + lane; rank < end; rank += THREADS) {
    StoreResult(at.output, at.index, rank, FromRecord(Records[from + rank]));
  }
}
