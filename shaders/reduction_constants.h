// Shared by C++ and HLSL: reduce and arg_reduce (include/reduction.hlsli).
#ifndef OPMILL_SHADERS_REDUCTION_CONSTANTS_H_
#define OPMILL_SHADERS_REDUCTION_CONSTANTS_H_

#include "constants.h"

// LOAD: what a lane's walk takes at a step, an item.
#define LOAD_ALIGNED 0  // a vector, all of it wanted
#define LOAD_SHIFTED 1  // rows: the run starts and ends inside vectors; columns: so does each item
#define LOAD_SCALAR 2   // one element
#define LOAD_RECORD 3   // a record of an earlier pass

// ITEMS: the most items that a kernel with a fixed number of items joins.
#define MOST_ITEMS 8

// The most vectors of a tile that a lane walks.
#define TILE_VECTORS 32

OPMILL_SHARED_BEGIN

// Units are results (rows), or vectors of neighbouring results (columns).
struct ReductionConstants {
  struct GroupConstants groups;
  struct Dim kept[OPMILL_MAX_DIMS];     // outermost first
  struct Dim reduced[OPMILL_MAX_DIMS];  // the same; only their input strides count
  uint kept_rank;                       // dimensions in use in kept[]
  uint reduced_rank;                    // and in reduced[]

  uint item_count;   // items of one whole reduction
  uint split_items;  // of those, how many one split walks
  uint splits;       // groups that share one result
  uint lane_bits;    // log2 of the lanes that share one result inside a group

  uint run_length;   // rows: elements in a run of neighbours
  uint run_vectors;  // rows: vectors that cover a run, however it is aligned
  uint lane_items;   // rows: items that each lane takes one after another; 0: lanes take turns

  uint columns;       // columns: elements of the innermost kept dimension
  uint column_units;  // columns: units that cover it
  uint column_input_stride;
  uint column_output_stride;
  uint tile_rows;  // columns in tiles: rows that a lane walks of one unit before the next

  uint input_base;     // offset of the first element in the view that is read
  uint output_base;    // the same in the output
  uint last_vector;    // the last vector that may be read
  uint index_base;     // position of this dispatch's first element in the whole reduction
  uint reduced_count;  // elements reduced into one result, over all dispatches
  uint position_mask;  // arg_reduce: ~0 for the last of equals, 0 for the first
  uint opaque_zero;    // always 0, opaque to the optimizer

  uint record_base;       // first record that is written
  uint record_stride;     // written records from one result to the next
  uint split_stride;      // and from one split of a result to the next
  uint read_stride;       // LOAD_RECORD: records that are read from one result to the next
  uint read_item_stride;  // and from one item of a result to the next
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_REDUCTION_CONSTANTS_H_
