// hardmax's second pass: stores 1 at the position that arg_reduce found for each result, and 0
// everywhere else.
#include "hardmax_constants.h"
#define KERNEL_CONSTANTS HardmaxConstants
#define LARGEST 1
#define NAN_FIRST 1
#include "include/candidate.hlsli"
#include "include/kept_dims.hlsli"
#include "include/task.hlsli"

#if DATA_TYPE == TYPE_FLOAT16
#define ONE_BITS 0x3C00u
#else
#define ONE_BITS 0x3F800000u
#endif

Buffer<uint4> Records : register(t0);  // arg_reduce's: key and position
RWBuffer<uint> Output : register(u0);

groupshared uint2 shared_best[THREADS];

uint2 Better(uint2 a, uint2 b) { return CandidateBefore(b.x, b.y, a.x, a.y) ? b : a; }

// The offset of position `item` (row-major) of the reduced dimensions.
uint ReducedOutputOffset(uint item) {
  uint offset = 0;
  uint rest = item;
  [branch] if (c.reduced_rank > 1) {
    for (uint d = c.reduced_rank; d > 1; --d) {
      uint size = c.reduced[d - 1].size;
      offset += (rest % size) * c.reduced[d - 1].output_stride;
      rest /= size;
    }
  }
  return offset + rest * c.reduced[0].output_stride;
}

// The lanes that share a result also share its records; the best one is returned to each of them.
uint FindPosition(Task task, uint lane) {
  uint base = instance.read0 + task.unit * c.read_stride;
  uint2 best = Records[base].xy;
  if (c.record_count > 1) {
    [loop] for (uint record = task.part; record < c.record_count; record += task.step) {
      best = Better(best, Records[base + record * c.read_item_stride].xy);
    }
    shared_best[lane] = best;
    GroupMemoryBarrierWithGroupSync();
    [loop] for (uint stride = task.step / 2; stride > 0; stride /= 2) {
      if (task.part < stride) {
        best = Better(best, shared_best[lane + (stride << c.part_shift)]);
        shared_best[lane] = best;
      }
      GroupMemoryBarrierWithGroupSync();
    }
    best = shared_best[lane - (task.part << c.part_shift)];
  }
  return best.y;
}

[numthreads(THREADS, 1, 1)]
void WriteOnes(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Task task = FindTask(EnterGroup(group), lane);
  uint one_at = FindPosition(task, lane) - c.first_position;
  if (task.exists) {
    uint base = instance.write0 + c.output_base + KeptOffsets(task.unit).output;
    [loop] for (uint item = task.first; item < task.end; item += task.step) {
      Output[base + ReducedOutputOffset(item)] = item == one_at ? ONE_BITS : 0;
    }
  }
}
