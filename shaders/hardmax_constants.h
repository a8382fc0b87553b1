// Shared by C++ and HLSL: hardmax's last step.
#ifndef OPMILL_SHADERS_HARDMAX_CONSTANTS_H_
#define OPMILL_SHADERS_HARDMAX_CONSTANTS_H_

#include "constants.h"

// STORE: what a lane stores at a step, an item.
#define STORE_ELEMENT 0
#define STORE_OF_ROW 1      // a vector of one result
#define STORE_OF_COLUMNS 2  // a vector of neighboring results, which are a unit

OPMILL_SHARED_BEGIN

// Units are results; items are the elements of one, as task.hlsli divides them.
struct HardmaxConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];     // outermost first
  struct Dim reduced[OPMILL_MAX_DIMS];  // the same; only their output strides count
  uint kept_rank;                       // dimensions in use in kept[]
  uint reduced_rank;                    // and in reduced[]
  uint item_count;
  uint splits;
  uint tiles;
  uint lane_bits;
  uint part_shift;
  uint output_base;
  uint first_position;  // of item 0 in the complete reduction
  uint record_count;    // arg_reduce's records of one result
  uint record_stride;   // records from one of a result to the next
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_HARDMAX_CONSTANTS_H_
