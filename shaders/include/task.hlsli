// Which items a lane takes if lanes and groups share units. Reads these constants of the kernel:
// item_count, splits, tiles, lane_bits, part_shift.
#include "include/dispatch.hlsli"

// Items first, first + step, ... of one unit, below end.
struct Task {
  uint unit;
  uint split;
  uint part;  // number of this lane among those that share the unit
  bool exists;  // false in lanes that only fill a group or the grid
  uint base;    // where item 0 of the unit starts
  uint first;
  uint step;
  uint end;
};

// A group takes adjacent units. Lanes that share a unit are 2^part_shift apart: in rows they are
// adjacent; in columns adjacent lanes read adjacent vectors instead. Splits take turns, so that all
// groups walk through memory together. The first groups take the end of the tensor, which its upload
// has left in the device's cache.
Task FindTask(uint flat_group, uint lane) {
  Task task;
  uint groups = c.tiles * c.splits;
  flat_group = flat_group < groups ? groups - 1 - flat_group : flat_group;
  task.split = flat_group / c.tiles;
  uint tile = flat_group - task.split * c.tiles;
  uint low = lane & ((1u << c.part_shift) - 1);
  uint high = (lane >> c.part_shift) >> c.lane_bits;
  uint lanes = 1u << c.lane_bits;
  task.part = (lane >> c.part_shift) & (lanes - 1);
  task.unit = tile * ((uint)THREADS >> c.lane_bits) + ((high << c.part_shift) | low);
  // Groups that only fill the grid come after the last split.
  task.exists = task.unit < c.groups.unit_count && task.split < c.splits;
  task.unit = min(task.unit, c.groups.unit_count - 1);
  task.first = task.split * lanes + task.part;
  task.step = c.splits * lanes;
  task.end = task.split < c.splits ? c.item_count : 0;
  task.base = 0;
  return task;
}
