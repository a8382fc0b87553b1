// What every kernel is handed: its constants, its instance and its flat group.
//   KERNEL_CONSTANTS  the struct of its constants, which begins with GroupConstants `groups`
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

// The first thing that a kernel does: finds its instance and its place in it, the flat group.
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
