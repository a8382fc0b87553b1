// Shared by C++ and HLSL: operators that compute each element of the output from the elements of up
// to eight inputs at the same place.
#ifndef OPMILL_SHADERS_ELEMENTWISE_CONSTANTS_H_
#define OPMILL_SHADERS_ELEMENTWISE_CONSTANTS_H_

#include "constants.h"

#define OPMILL_MAX_PARAMETERS 16

OPMILL_SHARED_BEGIN

// As Dim, with the tensors of an elementwise space.
struct ElementwiseDim {
  uint size;
  uint output_stride;
  uint unused0;  // whole rows
  uint unused1;
  uint stride0;  // of the inputs
  uint stride1;
  uint stride2;
  uint stride3;
  uint stride4;
  uint stride5;
  uint stride6;
  uint stride7;
};

// Two parameters of an operation: the bits of a number, and the high ones of 64.
struct ElementwiseParameters {
  uint low0;
  uint high0;
  uint low1;
  uint high1;
};

// Units are elements, or quads of a row's elements.
struct ElementwiseConstants {
  struct GroupConstants groups;
  struct ElementwiseDim dims[OPMILL_MAX_DIMS];  // outermost first; the last is the row, in units
  struct ElementwiseParameters parameters[OPMILL_MAX_PARAMETERS / 2];
  uint rank;         // dimensions in use in dims[]
  uint row_length;   // elements of a row
  uint output_base;  // offset of the first element in the view
  uint base0;        // the same for the inputs
  uint base1;
  uint base2;
  uint base3;
  uint base4;
  uint base5;
  uint base6;
  uint base7;
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_ELEMENTWISE_CONSTANTS_H_
