// hardmax's last step: the output is zero, one element of each result becomes 1.
#include "hardmax_constants.h"
#define KERNEL_CONSTANTS HardmaxConstants
#define SHORT_WALKS 1
#include "include/kept_dims.hlsli"
#include "include/elements.hlsli"

#if DATA_TYPE == TYPE_FLOAT16
#define ONE_BITS 0x3C00u
#else
#define ONE_BITS 0x3F800000u
#endif

Buffer<uint4> Positions : register(t0);  // arg_reduce's, one of each result
RWBuffer<uint> Output : register(u0);

// Position `flat` of the reduced dimensions, row-major.
uint ReducedOutputOffset(uint flat) {
  uint offset = 0;
  uint rest = flat;
  for (uint d = c.reduced_rank; d > 1; --d) {
    uint size = CONSTANTS.reduced[d - 1].size;
    offset += (rest % size) * CONSTANTS.reduced[d - 1].output_stride;
    rest /= size;
  }
  return offset + rest * c.reduced[0].output_stride;
}

[numthreads(THREADS, 1, 1)]
void ScatterOnes(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint result = units.x; result < units.y; result += THREADS) {
    Offsets at = KeptOffsets(result);
    uint place = c.positions_base + at.index;
    // Below zero wraps: one comparison tells whether the position lies in this dispatch's part.
    uint position = Positions[instance.read0 + place / 4][place % 4] - c.first_position;
    if (position < c.position_count) {
      uint one_at = c.output_base + at.output + ReducedOutputOffset(position);
      Output[instance.write0 + one_at] = ONE_BITS;
    }
  }
}
