// What a lane selects from a sequence alone: candidates in the order of their positions, four to a quad.
// That is a record of their keys (of 64 bits: one of the low words, one of the high ones) and one of
// their positions.
#include "include/elements.hlsli"

#define QUAD_RECORDS TOP_K_QUAD_RECORDS(IS_WIDE)

struct Quad {
  uint4 key;
#if IS_WIDE
  uint4 low;
#endif
  uint4 position;
};

#define LOAD_QUAD(quad, records, list, item)               \
  {                                                        \
    uint quad_at = (list) + (item) / 4 * QUAD_RECORDS;     \
    quad.key = records[quad_at + QUAD_RECORDS - 2];        \
    LOAD_LOW(quad, records, quad_at)                       \
    quad.position = records[quad_at + QUAD_RECORDS - 1];   \
  }
#if IS_WIDE
#define LOAD_LOW(quad, records, at) quad.low = records[at];
#else
#define LOAD_LOW(quad, records, at)
#endif

BITS QuadKey(Quad quad, uint i) {
#if IS_WIDE
  return uint2(quad.low[i], quad.key[i]);
#else
  return quad.key[i];
#endif
}
