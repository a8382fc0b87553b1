// What a device can do at most: kernels that only read, or only copy, the bytes that operators are
// measured against.
#include "include/dispatch.hlsli"

Buffer<uint4> Input : register(t0);
RWBuffer<uint4> Output : register(u0);

// A lane reads `split_items` vectors: of its own, one after another, where `lane_items` is not 0, or in
// turns with the group's other lanes.
struct Steps {
  uint first;
  uint end;
  uint step;
};

Steps StepsOf(uint flat_group, uint lane) {
  Steps steps;
  uint of_group = flat_group * c.split_items * THREADS;
  steps.first = of_group + (c.lane_items != 0 ? lane * c.split_items : lane);
  steps.step = c.lane_items != 0 ? 1 : THREADS;
  steps.end = min(steps.first + c.split_items * steps.step, c.item_count);
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
