// top_k by a radix sort of all items: how many of a chunk have each digit, and where those go.
// Counts are by sequence, digit and chunk; then follow the totals by sequence and digit.
//   SOURCE  top_k_constants.h; of CountDigits
#include "top_k_constants.h"

RWBuffer<uint> Counts : register(u0);

#ifdef SOURCE

#define KERNEL_CONSTANTS TopKRadixConstants
#include "include/top_k_items.hlsli"
#include "include/top_k_digit.hlsli"

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

#else

#define KERNEL_CONSTANTS TopKScanConstants
#include "include/dispatch.hlsli"

groupshared uint sums[THREADS];

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
    uint sum = own;
    sums[lane] = sum;
    GroupMemoryBarrierWithGroupSync();
    [loop] for (uint step = 1; step < THREADS; step *= 2) {
      uint before = 0;
      if (lane >= step) before = sums[lane - step];
      GroupMemoryBarrierWithGroupSync();
      sum += before;
      sums[lane] = sum;
      GroupMemoryBarrierWithGroupSync();
    }
    if (chunk < c.all_chunks) Counts[row + chunk] = total + sum - own;
    total += sums[THREADS - 1];
    GroupMemoryBarrierWithGroupSync();
  }
  if (lane == 0) Counts[instance.write0 + c.groups.unit_count * c.all_chunks + flat] = total;
}

#endif
