// top_k by a radix sort of all items: how many of a chunk have each digit. Counts are by sequence, digit
// and chunk; then follow the totals by sequence and digit.
//   SOURCE  top_k_constants.h
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKChunkConstants
#include "include/top_k_items.hlsli"
#include "include/top_k_digit.hlsli"

RWBuffer<uint> Counts : register(u0);

groupshared uint bins[TOP_K_DIGITS];

[numthreads(THREADS, 1, 1)]
void CountDigits(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint sequence = flat / c.chunks;
  uint chunk = flat % c.chunks;
  uint first = FirstItem(sequence);
  uint begin = chunk * c.chunk_length;
  uint end = min(begin + c.chunk_length, c.items.length);
  [loop] for (uint d = lane; d < TOP_K_DIGITS; d += THREADS) bins[d] = 0;
  GroupMemoryBarrierWithGroupSync();
  [loop] for (uint i = begin + lane; i < end; i += THREADS) {
    InterlockedAdd(bins[DigitOf(LoadItem(first, i))], 1);
  }
  GroupMemoryBarrierWithGroupSync();
  uint to = instance.write0 + sequence * TOP_K_DIGITS * c.all_chunks + c.first_chunk + chunk;
  [loop] for (uint j = lane; j < TOP_K_DIGITS; j += THREADS) {
    Counts[to + j * c.all_chunks] = bins[j];
  }
}
