// MIN and MAX. All drivers give the same result for NaN, denormals and -0 (which is below +0), because
// elements are compared as integers, by one instruction where they fit into a word.
#define LARGEST (FUNCTION == FUNCTION_MAX)
#define NAN_FIRST 1
#include "include/candidate.hlsli"

#if IS_WIDE
// Keys (candidate.hlsli): greater ones are better.
#define HIGH_ELEMENTS 0
#define VALUE uint2
#define VALUE_OF_WORDS ALL_WORDS
#define EMPTY_VALUE (uint2)0

VALUE ValueOf(BITS bits) { return CandidateKeyOf(bits); }
VALUE JoinValues(VALUE a, VALUE b) { return KeyAbove(b, a) ? b : a; }
BITS BitsOf(VALUE value) { return NumberOfKey(LARGEST ? value : Flip(value)); }

#elif IS_FLOAT
// Greater values are better. Ordered as integers, NaNs are above the best infinity and below the worst
// one. Subtracting NAN_KEYS wraps those below around, so that all NaNs are above the best infinity.
#define HIGH_ELEMENTS 1
#define VALUE INTS
#define VALUE_OF_WORDS(w) asint(w.x)
#define EMPTY_VALUE (INTS)0x80000000
#define NAN_KEYS (int)((SIGN_BIT - 1u - INFINITY_BITS) << ELEMENT_SHIFT)
#define BEST_INFINITY_KEY \
  ((int)((INFINITY_BITS << ELEMENT_SHIFT) | ((1u << ELEMENT_SHIFT) - 1u)) - NAN_KEYS)

// Converts the bits of a float to a signed integer of the same order, and back.
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
#define VALUE_OF_WORDS(w) asint(w.x)
#define EMPTY_VALUE (INTS)(LARGEST ? (int)0x80000000 : 0x7FFFFFFF)
#else
#define VALUE UINTS
#define VALUE_OF_WORDS ALL_WORDS
#define EMPTY_VALUE (UINTS)(LARGEST ? 0u : 0xFFFFFFFFu)
#endif

VALUE ValueOf(UINTS word) { return (VALUE)word; }
VALUE JoinValues(VALUE a, VALUE b) { return LARGEST ? max(a, b) : min(a, b); }
UINTS BitsOf(VALUE value) { return (UINTS)value >> ELEMENT_SHIFT; }

#endif

#include "include/value_part.hlsli"

BITS Finish(Part p) { return BitsOf(p.value); }
