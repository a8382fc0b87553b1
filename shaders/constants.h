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
  uint index_stride;  // top_k's second output
};

struct DispatchConstants {
  uint group_columns;  // groups.x: the flat group is group.y * group_columns + group.x
  uint output_count;   // results of this dispatch: the product of kept[].size
  uint kept_rank;      // dimensions in use in kept[], outermost first
  uint reduced_rank;   // dimensions in use in reduced[], outermost first

  uint run_length;    // elements in a row of neighbours along which a lane walks
  uint run_vectors;   // vectors that cover such a run, however it is aligned
  uint item_count;    // steps (vectors or elements) of the whole reduction
  uint split_items;   // of those, how many one split walks

  uint splits;         // groups that share one result
  uint lane_bits;      // log2 of the lanes that share one result inside a group
  uint column_vectors; // vectors that cover the innermost kept dimension
  uint columns;        // elements of the innermost kept dimension

  uint input_base;   // offset of the first element in the input's view
  uint output_base;  // likewise
  uint index_base;   // position of this dispatch's first element in the whole reduction
  uint reduced_count;  // elements reduced into one result, over all dispatches

  uint record_base;    // first record that this dispatch writes (or reads, when it combines)
  uint record_stride;  // records from one result to the next
  uint split_stride;   // records from one split to the next
  uint output2_base;   // of top_k's indices

  uint k;             // top_k: results a sequence
  uint block_length;  // top_k: elements that one champion stands for
  uint list_length;   // top_k: candidates a sequence
  uint list_stride;   // top_k: records from one sequence's list to the next

  struct Dim kept[OPMILL_MAX_DIMS];
  struct Dim reduced[OPMILL_MAX_DIMS];
};

#ifdef __cplusplus
static_assert(sizeof(DispatchConstants) == 6 * 16 + 2 * OPMILL_MAX_DIMS * 16);
}  // namespace opmill
#endif

#endif  // OPMILL_SHADERS_CONSTANTS_H_
