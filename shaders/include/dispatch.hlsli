// What every kernel receives: its constants, its instance and its flat group.
//   KERNEL_CONSTANTS  the struct of its constants, which begins with GroupConstants `groups`
#include "constants.h"

cbuffer Constants : register(b0) {
  KERNEL_CONSTANTS c;
  Instance instances[OPMILL_MAX_INSTANCES];
};

// The group's own. Code that indexes a buffer adds the start of its slot, once.
static Instance instance;

// Finds the instance, and returns the flat group within it. A kernel calls this first.
uint EnterGroup(uint3 group) {
  instance = instances[group.z];
  return c.groups.first_group + group.y * c.groups.group_columns + group.x;
}
