// top_k of sequences whose elements are apart: copies them into scratch, where they are adjacent.
// DATA_TYPE is an unsigned type.
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKGatherConstants
#include "include/kept_dims.hlsli"
#include "include/elements.hlsli"

Buffer<uint4> Input : register(t0);
RWBuffer<BITS> Rows : register(u0);

groupshared uint row_inputs[TOP_K_TILE_ROWS];
groupshared BITS tile[TOP_K_TILE + TOP_K_TILE_ROWS];  // a gap behind each row

#define LOADS 4  // of a lane in flight at a time

// Row and element of a place of the tile: adjacent lanes read from adjacent rows.
uint2 PlaceOf(uint place, uint rows, uint elements) {
  return uint2(min(place & ((1u << c.row_bits) - 1), rows - 1),
               min(place >> c.row_bits, elements - 1));
}

[numthreads(THREADS, 1, 1)]
void GatherRows(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint tile_rows = 1u << c.row_bits;
  uint tile_length = TOP_K_TILE >> c.row_bits;
  uint first_sequence = flat / c.row_tiles * tile_rows;
  uint first_element = flat % c.row_tiles * tile_length;
  uint rows = min(tile_rows, c.sequences - first_sequence);
  uint elements = min(tile_length, c.length - first_element);
  [loop] for (uint row = lane; row < rows; row += THREADS) {
    row_inputs[row] = instance.read0 * VECTOR_ELEMENTS + c.input_base +
                      KeptOffsets(first_sequence + row).input + first_element * c.element_stride;
  }
  GroupMemoryBarrierWithGroupSync();
  // Lanes beyond the last row or element repeat it.
  [unroll] for (uint i = 0; i < TOP_K_TILE; i += LOADS * THREADS) {
    uint4 loaded[LOADS];
    [unroll] for (uint u = 0; u < LOADS; ++u) {
      uint2 from = PlaceOf(i + u * THREADS + lane, rows, elements);
      loaded[u] = Input[(row_inputs[from.x] + from.y * c.element_stride) / VECTOR_ELEMENTS];
    }
    [unroll] for (uint w = 0; w < LOADS; ++w) {
      uint2 place = PlaceOf(i + w * THREADS + lane, rows, elements);
      uint at = row_inputs[place.x] + place.y * c.element_stride;
      tile[place.x * (tile_length + 1) + place.y] = ElementOf(loaded[w], at % VECTOR_ELEMENTS);
    }
  }
  GroupMemoryBarrierWithGroupSync();
  uint to = instance.write0 + c.row_base + first_sequence * c.row_stride + first_element;
  [loop] for (uint j = lane; j < TOP_K_TILE; j += THREADS) {
    uint row = j >> (TOP_K_TILE_BITS - c.row_bits);
    uint element = j & (tile_length - 1);
    if (row < rows && element < elements) {
      Rows[to + row * c.row_stride + element] = tile[row * (tile_length + 1) + element];
    }
  }
}
