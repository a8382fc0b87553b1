// Shared by C++ and HLSL: pooling.
#ifndef OPMILL_SHADERS_POOLING_CONSTANTS_H_
#define OPMILL_SHADERS_POOLING_CONSTANTS_H_

#include "constants.h"

// Values of the macro FUNCTION.
#define POOLING_MAX 0
#define POOLING_MAX_WITH_INDICES 1
#define POOLING_AVERAGE 2

OPMILL_SHARED_BEGIN

// A dimension of the results. Element k of the window of result i is at
// (first + i) * step + k * dilation - padding, if that is in the input.
struct PoolingDim {
  uint count;  // results
  uint output_stride;
  uint indices_stride;  // in the second output
  uint input_stride;
  uint position_stride;  // in the values of the second output
  uint input_size;
  uint window;
  uint step;
  uint dilation;
  uint padding;
  uint first;   // not 0 in slices
  uint unused;  // whole rows
};

// Units are results.
struct PoolingConstants {
  struct GroupConstants groups;
  struct PoolingDim dims[5];  // batch, channel, depth, height, width
  uint input_base;            // may wrap: where all positions in the input are 0
  uint output_base;
  uint indices_base;
  uint divisor;  // of averages; 0: the number of elements
};

#ifdef __cplusplus
// The index of a window without elements.
inline constexpr uint32_t kNoPoolingIndex = 0xFFFFFFFF;
#endif

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_POOLING_CONSTANTS_H_
