// What every kernel receives: its constants, its instance and its flat group.
//   KERNEL_CONSTANTS  the struct of its constants, which begins with GroupConstants `groups`
#include "constants.h"

// 1 if a lane takes many units of few steps each. Then the code around the steps matters: software
// devices load a constant wherever the source names it, and pay for loops that they do not enter.
// In long loops they have no registers to keep constants in.
#ifndef SHORT_WALKS
#define SHORT_WALKS 0
#endif

// Copies the constants once. Does not help for dimensions whose index is known only at run time.
#if SHORT_WALKS
#define CONSTANTS constants
static KERNEL_CONSTANTS c;
#else
#define CONSTANTS c
#endif

cbuffer Constants : register(b0) {
  KERNEL_CONSTANTS CONSTANTS;
  Instance instances[OPMILL_MAX_INSTANCES];
};

// The group's own. Code that indexes a buffer adds the start of its slot, once.
static Instance instance;

// Finds the instance, and returns the flat group within it. A kernel calls this first.
uint EnterGroup(uint3 group) {
#if SHORT_WALKS
  c = constants;
#endif
  instance = instances[group.z];
  return c.groups.first_group + group.y * c.groups.group_columns + group.x;
}

// The same with lane_units units for each lane, THREADS apart: its first, and where to stop.
uint2 EnterUnits(uint3 group, uint lane) {
  uint flat_group = EnterGroup(group);
  uint group_units = THREADS * c.groups.lane_units;
  uint first = flat_group * group_units + lane;
  return uint2(first, min(first + group_units, c.groups.unit_count));
}
