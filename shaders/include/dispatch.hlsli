// What every kernel is handed: its constants, its flat group, and walks over dimensions.
#ifndef OPMILL_DISPATCH_HLSLI_
#define OPMILL_DISPATCH_HLSLI_

#include "constants.h"

// 1 where a lane takes many units of few steps each. What is around a walk counts then, and a software
// device looks each constant up where it stands in the source, and pays for a loop that it does not
// enter. In long loops it has no room to keep constants.
#ifndef SHORT_WALKS
#define SHORT_WALKS 0
#endif

// A dimension by a number that is known only at run time is not kept.
#if SHORT_WALKS
#define CONSTANTS constants
#else
#define CONSTANTS c
#endif

cbuffer Constants : register(b0) {
  DispatchConstants CONSTANTS;
  Instance instances[OPMILL_MAX_INSTANCES];
};

#if SHORT_WALKS
static DispatchConstants c;
#endif

// The group's own. Whoever indexes a buffer adds the start of its slot, once.
static Instance instance;

// The first thing that a kernel does: finds its instance and its place in it, the flat group.
uint EnterGroup(uint3 group) {
#if SHORT_WALKS
  c = constants;
#endif
  instance = instances[group.z];
  return c.first_group + group.y * c.group_columns + group.x;
}

// Likewise with c.lane_units units for each lane, THREADS apart: its first, and where to stop.
uint2 EnterUnits(uint3 group, uint lane) {
  uint first = EnterGroup(group) * (THREADS * c.lane_units) + lane;
  return uint2(first, min(first + THREADS * c.lane_units, c.unit_count));
}

// Offsets of one position in each tensor, in elements, from the dispatch's own bases.
struct Offsets {
  uint input;
  uint output;
  uint index;
};

// Position `flat` of the kept dimensions, row-major. The outermost dimension needs no division.
Offsets KeptOffsets(uint flat) {
  Offsets at = {0, 0, 0};
  uint rest = flat;
#if SHORT_WALKS
  [branch] if (c.kept_rank > 1)
#endif
  {
    for (uint d = c.kept_rank; d > 1; --d) {
      Dim dim = CONSTANTS.kept[d - 1];
      uint position = rest % dim.size;
      rest /= dim.size;
      at.input += position * dim.input_stride;
      at.output += position * dim.output_stride;
      at.index += position * dim.index_stride;
    }
  }
  at.input += rest * c.kept[0].input_stride;
  at.output += rest * c.kept[0].output_stride;
  at.index += rest * c.kept[0].index_stride;
  return at;
}

// Likewise over the reduced dimensions.
uint ReducedInputOffset(uint flat) {
  uint offset = 0;
  uint rest = flat;
  for (uint d = c.reduced_rank; d > 1; --d) {
    uint size = CONSTANTS.reduced[d - 1].size;
    offset += (rest % size) * CONSTANTS.reduced[d - 1].input_stride;
    rest /= size;
  }
  return offset + rest * c.reduced[0].input_stride;
}

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

#endif  // OPMILL_DISPATCH_HLSLI_
