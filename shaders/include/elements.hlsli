// How vectors of 16 bytes hold the elements of a tensor, the elements' bits, and keys that order
// them. DATA_TYPE is DirectML's number of the element type.

#define TYPE_FLOAT32 1
#define TYPE_FLOAT16 2
#define TYPE_UINT32 3
#define TYPE_UINT16 4
#define TYPE_UINT8 5
#define TYPE_INT32 6
#define TYPE_INT16 7
#define TYPE_INT8 8
#define TYPE_UINT64 10
#define TYPE_INT64 11

#if DATA_TYPE == TYPE_UINT8 || DATA_TYPE == TYPE_INT8
#define VECTOR_ELEMENTS 16
#elif DATA_TYPE == TYPE_FLOAT16 || DATA_TYPE == TYPE_UINT16 || DATA_TYPE == TYPE_INT16
#define VECTOR_ELEMENTS 8
#elif DATA_TYPE == TYPE_UINT64 || DATA_TYPE == TYPE_INT64
#define VECTOR_ELEMENTS 2
#else
#define VECTOR_ELEMENTS 4
#endif

#define IS_WIDE (VECTOR_ELEMENTS == 2)
#define IS_FLOAT (DATA_TYPE == TYPE_FLOAT32 || DATA_TYPE == TYPE_FLOAT16)
#define IS_SIGNED_INT (DATA_TYPE == TYPE_INT64 || DATA_TYPE == TYPE_INT32 || \
                       DATA_TYPE == TYPE_INT16 || DATA_TYPE == TYPE_INT8)

// The number of elements that are folded side by side, each into its own result: 4 or 1.
#ifndef WIDTH
#define WIDTH 1
#endif

#if WIDTH == 4
#define UINTS uint4
#define INTS int4
#define FLOATS float4
#define BOOLS bool4
#define COMPONENT(v, i) (v)[i]
#define COMPONENTS uint4(0, 1, 2, 3)
#else
#define UINTS uint
#define INTS int
#define FLOATS float
#define BOOLS bool
#define COMPONENT(v, i) (v)
#define COMPONENTS 0
#endif

// The bits of WIDTH elements, each in the low bits of a word; or those of one element of 64 bits.
#if IS_WIDE
#define BITS uint2
#else
#define BITS UINTS
#endif

#define ELEMENT_BITS (128 / VECTOR_ELEMENTS)
#if VECTOR_ELEMENTS == 16
#define ELEMENT_MASK 0xFFu
#define SIGN_BIT 0x80u
#elif VECTOR_ELEMENTS == 8
#define ELEMENT_MASK 0xFFFFu
#define SIGN_BIT 0x8000u
#else
#define ELEMENT_MASK 0xFFFFFFFFu
#define SIGN_BIT 0x80000000u
#endif

#if !IS_WIDE
// Shorter elements are compared in the high bits of a word. The bits of other elements may be below
// them.
#define ELEMENT_SHIFT (32 - 128 / VECTOR_ELEMENTS)
#endif

// v[word], where `word` is not known to the compiler.
uint WordOf(uint4 v, uint word) {
  uint low = (word & 1) != 0 ? v.y : v.x;
  uint high = (word & 1) != 0 ? v.w : v.z;
  return (word & 2) != 0 ? high : low;
}

#if WIDTH == 4
#define ComponentOf(v, i) WordOf(v, i)
#else
#define ComponentOf(v, i) (v)
#endif

// One element of a vector, where its index is not known to the compiler.
#if VECTOR_ELEMENTS == 2
uint2 ElementOf(uint4 v, uint element) {
  return element == 0 ? v.xy : v.zw;
#else
uint ElementOf(uint4 v, uint element) {
  uint bits = WordOf(v, element * 4 / VECTOR_ELEMENTS);
  return (bits >> ((element * ELEMENT_BITS) % 32)) & ELEMENT_MASK;
#endif
}

// Keys are unsigned integers in the order of the numbers. Comparing them gives the same result on all
// drivers, also for NaN, denormals and -0.
BOOLS KeyAbove(BITS a, BITS b) {
#if IS_WIDE
  return a.y > b.y || (a.y == b.y && a.x > b.x);
#else
  return a > b;
#endif
}

BOOLS KeyEqual(BITS a, BITS b) {
#if IS_WIDE
  return a.x == b.x && a.y == b.y;
#else
  return a == b;
#endif
}

#if DATA_TYPE == TYPE_FLOAT16
#define INFINITY_BITS 0x7C00u
#define QUIET_NAN_BITS 0x7E00u
#elif DATA_TYPE == TYPE_FLOAT32
#define INFINITY_BITS 0x7F800000u
#define QUIET_NAN_BITS 0x7FC00000u
#endif

#if IS_FLOAT
BOOLS IsNan(BITS bits) { return (bits & (ELEMENT_MASK & ~SIGN_BIT)) > INFINITY_BITS; }
#endif

// Increases with the number; -0 is just below +0. NaNs are not treated specially.
BITS NumberKey(BITS bits) {
#if IS_FLOAT
  return (bits & SIGN_BIT) != 0 ? ~bits & ELEMENT_MASK : bits | SIGN_BIT;
#elif IS_WIDE && IS_SIGNED_INT
  return uint2(bits.x, bits.y ^ SIGN_BIT);
#elif IS_SIGNED_INT
  return bits ^ SIGN_BIT;
#else
  return bits;
#endif
}

BITS NumberOfKey(BITS key) {
#if IS_FLOAT
  return (key & SIGN_BIT) != 0 ? key ^ SIGN_BIT : ~key & ELEMENT_MASK;
#else
  return NumberKey(key);
#endif
}

// Reverses the order of keys, so that the smallest number has the largest key.
BITS Flip(BITS key) {
#if IS_WIDE
  return ~key;
#else
  return ~key & ELEMENT_MASK;
#endif
}

// Replaces -0 by +0.
BITS FoldZero(BITS bits) {
#if IS_FLOAT
  return bits == SIGN_BIT ? (BITS)0 : bits;
#else
  return bits;
#endif
}
