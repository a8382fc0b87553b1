// Shared by C++ and HLSL: operators of two inputs, element by element.
#ifndef OPMILL_SHADERS_ELEMENTWISE_CONSTANTS_H_
#define OPMILL_SHADERS_ELEMENTWISE_CONSTANTS_H_

#include "constants.h"

OPMILL_SHARED_BEGIN

// One dimension of an elementwise walk: how far a step along it moves in each tensor.
struct ElementwiseDim {
  uint size;
  uint a_stride;
  uint b_stride;
  uint output_stride;
};

// Units are elements, or vectors of a row's elements.
struct ElementwiseConstants {
  struct GroupConstants groups;
  struct ElementwiseDim dims[OPMILL_MAX_DIMS];  // outermost first; the last is the row, in units
  uint rank;                                    // dimensions in use in dims[]
  uint row_length;                              // elements of a row
  uint a_base;  // offset of the first element in the view that is read
  uint b_base;
  uint output_base;
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_ELEMENTWISE_CONSTANTS_H_
