// MIN and MAX, in a few steps an element. All drivers give the same result for NaN, denormals and -0
// (which is below +0), because integers are compared.
#define LARGEST (FUNCTION == FUNCTION_MAX)
#define NAN_FIRST 1
#include "include/candidate.hlsli"

#if IS_WIDE
// Keys, the better the larger.
#define HIGH_ELEMENTS 0
#define VALUE uint2
#define EMPTY_VALUE (uint2)0

VALUE ValueOf(BITS bits) { return CandidateKeyOf(bits); }
VALUE JoinValues(VALUE a, VALUE b) { return KeyAbove(b, a) ? b : a; }
BITS BitsOf(VALUE value) { return NumberOfKey(LARGEST ? value : Flip(value)); }

#elif IS_FLOAT
// Signed, the better the larger: below the worst infinity stand the NaNs of its sign, which wrap to
// the NaNs above the best one.
#define HIGH_ELEMENTS 1
#define VALUE INTS
#define VALUE_OF_WORD asint
#define EMPTY_VALUE (INTS)0x80000000
#define NAN_KEYS (int)((SIGN_BIT - 1u - INFINITY_BITS) << ELEMENT_SHIFT)
#define BEST_INFINITY_KEY \
  ((int)((INFINITY_BITS << ELEMENT_SHIFT) | ((1u << ELEMENT_SHIFT) - 1u)) - NAN_KEYS)

// Floats in the order of signed integers, and back.
INTS OrderedWord(INTS word) { return word ^ ((word >> 31) & 0x7FFFFFFF); }

VALUE ValueOf(UINTS word) {
  INTS ordered = OrderedWord((INTS)word);
  return (LARGEST ? ordered : ~ordered) - NAN_KEYS;
}

VALUE JoinValues(VALUE a, VALUE b) { return max(a, b); }

UINTS BitsOf(VALUE value) {
  INTS ordered = value + NAN_KEYS;
  UINTS word = (UINTS)OrderedWord(LARGEST ? ordered : ~ordered);
  return value > BEST_INFINITY_KEY ? (UINTS)QUIET_NAN_BITS : word >> ELEMENT_SHIFT;
}

#else
// The elements themselves, in the high bits.
#define HIGH_ELEMENTS 1
#if IS_SIGNED_INT
#define VALUE INTS
#define VALUE_OF_WORD asint
#define EMPTY_VALUE (INTS)(LARGEST ? (int)0x80000000 : 0x7FFFFFFF)
#else
#define VALUE UINTS
#define VALUE_OF_WORD asuint
#define EMPTY_VALUE (UINTS)(LARGEST ? 0u : 0xFFFFFFFFu)
#endif

VALUE ValueOf(UINTS word) { return (VALUE)word; }
VALUE JoinValues(VALUE a, VALUE b) { return LARGEST ? max(a, b) : min(a, b); }
UINTS BitsOf(VALUE value) { return (UINTS)value >> ELEMENT_SHIFT; }

#endif

#include "include/value_part.hlsli"

BITS Finish(Part p) { return BitsOf(p.value); }
