// What a device can do at most: kernels that only read, or only copy, the bytes that operators are
// measured against.
#include "bandwidth_constants.h"
#define KERNEL_CONSTANTS BandwidthConstants
#include "include/dispatch.hlsli"

Buffer<uint4> Input : register(t0);
RWBuffer<uint4> Output : register(u0);

// The vectors that a lane reads.
struct Steps {
  uint first;
  uint end;
  uint step;
};

Steps StepsOf(uint flat_group, uint lane) {
  Steps steps;
  uint of_group = flat_group * c.lane_vectors * THREADS;
  steps.first = of_group + (c.in_stretches != 0 ? lane * c.lane_vectors : lane);
  steps.step = c.in_stretches != 0 ? 1 : THREADS;
  steps.end = min(steps.first + c.lane_vectors * steps.step, c.vector_count);
  return steps;
}

// Every lane stores one vector, so that nothing is dropped.
[numthreads(THREADS, 1, 1)]
void ReadOnly(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint4 seen = 0;
  uint flat_group = EnterGroup(group);
  Steps steps = StepsOf(flat_group, lane);
  [loop] for (uint i = steps.first; i < steps.end; i += steps.step) seen ^= Input[i];
  Output[flat_group * THREADS + lane] = seen;
}

[numthreads(THREADS, 1, 1)]
void Copy(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Steps steps = StepsOf(EnterGroup(group), lane);
  [loop] for (uint i = steps.first; i < steps.end; i += steps.step) Output[i] = Input[i];
}
