// Shared by C++ and HLSL: reduce and arg_reduce (include/reduction.hlsli).
#ifndef OPMILL_SHADERS_REDUCTION_CONSTANTS_H_
#define OPMILL_SHADERS_REDUCTION_CONSTANTS_H_

#include "constants.h"

// LOAD: what a lane reads at a step, an item.
#define LOAD_ROW_ALIGNED 0     // a vector of one result, all of it wanted
#define LOAD_ROW_SHIFTED 1     // the same where runs start and end inside vectors
#define LOAD_SCALAR 2          // one element
#define LOAD_RECORD 3          // a record of an earlier pass
#define LOAD_COLUMN_ALIGNED 4  // a vector of neighboring results
#define LOAD_COLUMN_SHIFTED 5  // the same where it starts inside a vector

// RESULT: what is stored.
#define RESULT_RECORD 0  // a state, for the next pass
#define RESULT_WORD 1    // an output of at most 4 bytes
#define RESULT_PAIR 2    // an output of 8 bytes

// The most items of a lane of arg_reduce: it counts them, with the 4 sets of a vector of bytes, in
// 16 bits.
#define MOST_LANE_ITEMS (65533 / 4)

// The most words of a state.
#define MOST_PART_WORDS 3

OPMILL_SHARED_BEGIN

// Units are results, or vectors of neighboring results (columns). 2^lane_bits lanes of a group,
// 2^part_shift apart, share a unit.
struct ReductionConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];     // outermost first
  struct Dim reduced[OPMILL_MAX_DIMS];  // the same; only their input strides count
  uint kept_rank;                       // dimensions in use in kept[]
  uint reduced_rank;                    // and in reduced[]

  uint item_count;  // items of one complete reduction
  uint splits;      // groups that share one result; they interleave its items
  uint tiles;       // groups of one split
  uint lane_bits;
  uint part_shift;

  uint run_length;            // rows: elements in a run of neighbors
  uint run_vectors;           // rows: vectors that cover a run, however it is aligned
  uint columns;               // columns: elements of the innermost kept dimension
  uint column_units;          // columns: units that cover it
  uint column_output_stride;  // columns: of that dimension

  uint input_base;      // offset of the first element in the view that is read
  uint output_base;     // the same in the output
  uint last_vector;     // the last vector that may be read
  uint first_position;  // of this dispatch's elements, in the complete reduction
  uint reduced_count;   // elements reduced into one result, over all dispatches
  uint position_mask;   // arg_reduce: ~0 for the last of equals, 0 for the first

  uint partials_base;  // JOINS: where states start, after a counter for each tile
  uint record_base;    // RESULT_RECORD: the record of the first result
  uint record_stride;  // LOAD_RECORD: records from one item of a result to the next
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_REDUCTION_CONSTANTS_H_
