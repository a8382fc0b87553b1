// top_k by a radix sort of all items: replaces each count of a digit by the sum of its counts in the chunks
// before. Totals follow all counts.
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKScanConstants
#include "include/dispatch.hlsli"
#include "include/sum_lanes.hlsli"

RWBuffer<uint> Counts : register(u0);  // top_k_count.hlsl

[numthreads(THREADS, 1, 1)]
void ScanCounts(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint row = instance.write0 + flat * c.all_chunks;
  uint total = 0;
  [loop] for (uint begin = 0; begin < c.all_chunks; begin += THREADS) {
    uint chunk = begin + lane;
    uint own = 0;
    if (chunk < c.all_chunks) own = Counts[row + chunk];
    uint before = SumBefore(lane, own);
    if (chunk < c.all_chunks) Counts[row + chunk] = total + before;
    total += SumOfAll();
  }
  if (lane == 0) Counts[instance.write0 + c.groups.unit_count * c.all_chunks + flat] = total;
}
