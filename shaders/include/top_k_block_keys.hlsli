// The best keys of blocks, as top_k_blocks.hlsl leaves them, four (64-bit: two) at a time. The
// including shader names their buffer BLOCK_KEYS.
#include "include/dispatch.hlsli"
#include "include/top_k_key.hlsli"

#if IS_WIDE
#define KEY_STEP (TOP_K_KEY_STEP / 2)
#else
#define KEY_STEP TOP_K_KEY_STEP
#endif

// Where the key of block 0 of a sequence stands, in keys. (A vector holds KEY_STEP of them.)
uint KeyBase(uint sequence) {
#if LAYOUT == LAYOUT_COLUMNS
  // Vectors of keys follow the sets of words.
  uint column = sequence % c.keys.columns;
  uint element = column % VECTOR_ELEMENTS;
  return instance.read1 * KEY_STEP + sequence / c.keys.columns * c.keys.sequence_stride + column - element +
         element % WORD_SETS * 4 + element / WORD_SETS;
#else
  return instance.read1 * KEY_STEP + sequence * c.keys.sequence_stride;
#endif
}

BITS KeyAt(uint at) {
#if IS_WIDE
  uint4 v = BLOCK_KEYS[at / 2];
  return (at & 1) != 0 ? v.zw : v.xy;
#else
  return BLOCK_KEYS[at / 4][at % 4];
#endif
}

// The keys of blocks `block`, a multiple of KEY_STEP, and on.
uint4 LoadKeys(uint base, uint block) {
  uint at = base + block * c.keys.item_stride;
#if LAYOUT == LAYOUT_ROWS
  return BLOCK_KEYS[at / KEY_STEP];
#elif IS_WIDE
  return uint4(KeyAt(at), KeyAt(at + c.keys.item_stride));
#else
  return uint4(KeyAt(at), KeyAt(at + c.keys.item_stride),
               KeyAt(at + 2 * c.keys.item_stride), KeyAt(at + 3 * c.keys.item_stride));
#endif
}

BITS KeyOfStep(uint4 v, uint i) {
#if IS_WIDE
  return i == 0 ? v.xy : v.zw;
#else
  return v[i];
#endif
}
