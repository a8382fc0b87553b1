// hardmax's last step: the output is zero, one element of each result becomes 1.
#include "include/dispatch.hlsli"
#include "include/elements.hlsli"

#if DATA_TYPE == TYPE_FLOAT16
#define ONE_BITS 0x3C00u
#else
#define ONE_BITS 0x3F800000u
#endif

Buffer<uint4> Records : register(t0);  // arg_reduce's: the position in z
RWBuffer<uint> Output : register(u0);

[numthreads(THREADS, 1, 1)]
void ScatterOnes(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint result = EnterGroup(group) * THREADS + lane;
  if (result >= c.unit_count) return;
  // Below zero wraps: one comparison tells whether the position lies in this dispatch's part.
  uint position = Records[instance.read0 + c.input_base + result].z - c.index_base;
  if (position >= c.index_count) return;
  uint at = c.output_base + KeptOffsets(result).output + ReducedOutputOffset(position);
  Output[instance.write0 + at] = ONE_BITS;
}
