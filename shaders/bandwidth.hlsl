// What a device can do at most: kernels that only read, or only copy, the bytes that operators are
// measured against.
#include "include/dispatch.hlsli"

Buffer<uint4> Input : register(t0);
RWBuffer<uint4> Output : register(u0);

// Every group reads `split_items` vectors a lane and stores one vector, so that nothing is dropped.
[numthreads(THREADS, 1, 1)]
void ReadOnly(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint4 seen = 0;
  uint flat_group = EnterGroup(group);
  uint first = flat_group * c.split_items * THREADS + lane;
  uint end = min(first + c.split_items * THREADS, c.item_count);
  [loop] for (uint i = first; i < end; i += THREADS) seen ^= Input[i];
  Output[flat_group * THREADS + lane] = seen;
}

[numthreads(THREADS, 1, 1)]
void Copy(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint first = flat_group * c.split_items * THREADS + lane;
  uint end = min(first + c.split_items * THREADS, c.item_count);
  [loop] for (uint i = first; i < end; i += THREADS) Output[i] = Input[i];
}
