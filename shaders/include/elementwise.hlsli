// What a kernel of two inputs, element by element, is handed: its constants, its units, and where
// their elements are.
#ifndef OPMILL_ELEMENTWISE_HLSLI_
#define OPMILL_ELEMENTWISE_HLSLI_

#include "constants.h"

cbuffer Constants : register(b0) {
  ElementwiseConstants constants;
  Instance instances[OPMILL_MAX_INSTANCES];
};

// Kept, as a software device looks each constant up where it stands in the source (dispatch.hlsli).
static ElementwiseConstants c;

// The group's own. Whoever indexes a buffer adds the start of its slot, once.
static Instance instance;

// The first thing that a kernel does. A lane takes c.lane_units units, THREADS apart: its first, and
// where to stop.
uint2 EnterUnits(uint3 group, uint lane) {
  c = constants;
  instance = instances[group.z];
  uint flat_group = c.first_group + group.y * c.group_columns + group.x;
  uint first = flat_group * (THREADS * c.lane_units) + lane;
  return uint2(first, min(first + THREADS * c.lane_units, c.unit_count));
}

// Offsets of a unit's first element in each tensor's view, and which unit of its row it is.
struct Place {
  uint a;
  uint b;
  uint output;
  uint in_row;
};

// The outermost dimension needs no division.
Place PlaceOf(uint unit) {
  Place at;
  at.a = c.a_base;
  at.b = c.b_base;
  at.output = c.output_base;
  at.in_row = unit;
  uint rest = unit;
  [branch] if (c.rank > 1) {
    at.in_row = unit % constants.dims[c.rank - 1].size;
    for (uint d = c.rank - 1; d > 0; --d) {
      ElementwiseDim dim = constants.dims[d];
      uint position = rest % dim.size;
      rest /= dim.size;
      at.a += position * dim.a_stride;
      at.b += position * dim.b_stride;
      at.output += position * dim.output_stride;
    }
  }
  at.a += rest * c.dims[0].a_stride;
  at.b += rest * c.dims[0].b_stride;
  at.output += rest * c.dims[0].output_stride;
  return at;
}

#endif  // OPMILL_ELEMENTWISE_HLSLI_
