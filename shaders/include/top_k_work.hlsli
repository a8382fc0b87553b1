// Which part of top_k's work a group and its lanes take.
#include "include/dispatch.hlsli"

// With one group for each sequence: its sequence. Groups that only fill the grid up go with the last
// one, so that all meet at its barriers, and are not real: they write nothing.
uint EnterSequence(uint3 group, out bool is_real) {
  uint flat_group = EnterGroup(group);
  is_real = flat_group < c.sequences;
  return min(flat_group, c.sequences - 1);
}
