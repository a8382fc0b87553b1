// Shared by C++ and HLSL: what one dispatch is told about its shape. 32-bit scalars only, four to a
// row, so that both languages lay it out alike. Offsets and strides are in elements.
#ifndef OPMILL_SHADERS_CONSTANTS_H_
#define OPMILL_SHADERS_CONSTANTS_H_

#ifdef __cplusplus
#include <cstdint>
namespace opmill {
using uint = uint32_t;
#endif

#define OPMILL_MAX_DIMS 8

// One dimension of an iteration space: how far a step along it moves in each tensor.
struct Dim {
  uint size;
  uint input_stride;
  uint output_stride;
  uint index_stride;  // top_k's second output, hardmax's positions
};

struct DispatchConstants {
  uint group_columns;  // groups.x: flat groups are first_group + group.y * group_columns + group.x
  uint kept_rank;      // dimensions in use in kept[], outermost first
  uint reduced_rank;   // dimensions in use in reduced[], outermost first
  uint unit_count;     // what lanes are dealt: results, or vectors of neighbouring results

  uint item_count;   // steps (vectors, elements or records) of one whole reduction
  uint split_items;  // of those, how many one split walks
  uint splits;       // groups that share one result
  uint lane_bits;    // log2 of the lanes that share one result inside a group

  uint run_length;    // rows: elements in a run of neighbours
  uint run_vectors;   // rows: vectors that cover a run, however it is aligned
  uint columns;       // columns: elements of the innermost kept dimension
  uint column_units;  // columns: units that cover it

  uint column_input_stride;  // columns: of the innermost kept dimension
  uint column_output_stride;
  uint last_vector;    // the last vector that may be read
  uint reduced_count;  // elements reduced into one result, over all dispatches

  uint input_base;    // offset of the first element (record, position) in the view that is read
  uint output_base;   // likewise in the first output
  uint output2_base;  // likewise in top_k's indices
  uint index_base;    // position of this dispatch's first element in the whole reduction

  uint record_base;    // first record that this dispatch writes
  uint record_stride;  // written records from one result to the next
  uint split_stride;   // written records from one split of a result to the next
  uint index_count;    // elements of the whole reduction that this dispatch covers

  uint read_stride;       // read records from one result to the next
  uint read_item_stride;  // read records from one item of a result to the next
  uint list_length;       // top_k: candidates of a sequence
  uint runs;              // top_k: of a sequence: merged runs; lanes; the most that a cut leaves;
                          // or sequences ranked side by side

  uint k;             // top_k: ranks of a sequence
  uint rank_base;     // top_k: first rank that this dispatch writes
  uint block_length;  // top_k: elements of a block
  uint block_base;    // top_k: number of the first block of this dispatch's part

  uint block_count;      // top_k: blocks of that part, or of slots that are ranked
  uint key_stride;       // top_k: keys of blocks from a sequence to the next
  uint key_item_stride;  // top_k: keys of blocks from a block to the next
  uint sequences;        // top_k: results of this dispatch's slice

  uint counted;           // top_k: 1 where headers tell how many candidates there are
  uint candidate_stride;  // top_k: records of candidates from a sequence to the next
  uint position_mask;     // arg-reduce: ~0 for the last of equals, 0 for the first
  uint zero;              // 0, which compilers do not know

  uint first_group;  // not 0 in a dispatch that goes on where another was cut
  uint lane_units;   // units that a lane takes, THREADS apart: a tile at once, else in turns
  uint lane_items;   // rows: steps that each lane takes one after another; 0: lanes take turns
  uint tile_rows;    // columns in tiles: rows that a lane walks of one unit before the next

  struct Dim kept[OPMILL_MAX_DIMS];
  struct Dim reduced[OPMILL_MAX_DIMS];
};

// One dimension of an elementwise walk: how far a step along it moves in each tensor.
struct ElementwiseDim {
  uint size;
  uint a_stride;
  uint b_stride;
  uint output_stride;
};

// What one dispatch of an operator of two inputs, element by element, is told about its shape.
struct ElementwiseConstants {
  uint group_columns;  // as in DispatchConstants
  uint first_group;
  uint unit_count;  // elements, or vectors of a row's elements
  uint lane_units;

  uint a_base;  // offset of the first element in the view that is read
  uint b_base;
  uint output_base;
  uint rank;  // dimensions in use in dims[], outermost first; the last one is the row, in units

  uint row_length;  // elements of a row
  uint unused0;
  uint unused1;
  uint unused2;

  struct ElementwiseDim dims[OPMILL_MAX_DIMS];
};

// Words of the header that a selection of top_k keeps for each sequence.
#define TOP_K_HEADER_WORDS 8

// Runs of one operator that a dispatch may serve at once, each with its own layer of groups.
#define OPMILL_MAX_INSTANCES 64

// Where the buffers of one of them start in the views of t0, t1, u0 and u1, in elements of the
// view.
struct Instance {
  uint read0;
  uint read1;
  uint write0;
  uint write1;
};

#ifdef __cplusplus
static_assert(sizeof(Instance) == 16);
static_assert(sizeof(ElementwiseConstants) == 3 * 16 + OPMILL_MAX_DIMS * 16);
static_assert(sizeof(DispatchConstants) == 11 * 16 + 2 * OPMILL_MAX_DIMS * 16);
}  // namespace opmill
#endif

#endif  // OPMILL_SHADERS_CONSTANTS_H_
