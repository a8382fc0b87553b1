// The walk over the kept dimensions, c.kept_rank of c.kept.
#include "include/dispatch.hlsli"

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
  for (uint d = c.kept_rank; d > 1; --d) {
    Dim dim = c.kept[d - 1];
    uint position = rest % dim.size;
    rest /= dim.size;
    at.input += position * dim.input_stride;
    at.output += position * dim.output_stride;
    at.index += position * dim.index_stride;
  }
  at.input += rest * c.kept[0].input_stride;
  at.output += rest * c.kept[0].output_stride;
  at.index += rest * c.kept[0].index_stride;
  return at;
}
