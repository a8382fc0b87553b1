// Where the elements of a unit are, in kernels of two inputs, element by element.
#include "elementwise_constants.h"
#define KERNEL_CONSTANTS ElementwiseConstants
#include "include/dispatch.hlsli"

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
    at.in_row = unit % c.dims[c.rank - 1].size;
    for (uint d = c.rank - 1; d > 0; --d) {
      ElementwiseDim dim = c.dims[d];
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
