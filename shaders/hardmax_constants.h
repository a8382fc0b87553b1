// Shared by C++ and HLSL: hardmax's last step.
#ifndef OPMILL_SHADERS_HARDMAX_CONSTANTS_H_
#define OPMILL_SHADERS_HARDMAX_CONSTANTS_H_

#include "constants.h"

OPMILL_SHARED_BEGIN

// Units are results.
struct HardmaxConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];     // outermost first
  struct Dim reduced[OPMILL_MAX_DIMS];  // the same; only their output strides count
  uint kept_rank;                       // dimensions in use in kept[]
  uint reduced_rank;                    // and in reduced[]
  uint positions_base;                  // offset of the first position in the view that is read
  uint output_base;
  uint first_position;  // of this dispatch's part of the reduced dimensions
  uint position_count;  // and how many that part has
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_HARDMAX_CONSTANTS_H_
