// The order of candidates in arg-reduce, top-k and hardmax. A candidate has a key (the larger the
// better) and a position (the smaller the better). Direction, NaN and -0 are part of the key.
#include "include/elements.hlsli"

#define NOWHERE 0xFFFFFFFFu  // the position of no element: loses against every other

BOOLS CandidateBefore(BITS a_key, UINTS a_position, BITS b_key, UINTS b_position) {
  return KeyAbove(a_key, b_key) || (KeyEqual(a_key, b_key) && a_position < b_position);
}

// LARGEST: the largest element has the best key. NAN_FIRST: NaN is the best of all, as searches of
// extremes want it; otherwise it stands above +inf, so that the smallest come without it.
#if IS_FLOAT && NAN_FIRST && ELEMENT_MASK == 0xFFFFFFFFu
// A negative number becomes minus its magnitude, which folds -0. The sum puts -inf at 0, and NaNs of
// either sign above +inf.
BITS CandidateKeyOf(BITS bits) {
  bits = LARGEST ? bits : bits ^ SIGN_BIT;
  UINTS sign = (UINTS)((INTS)bits >> 31);
  return min((bits ^ (sign & ~SIGN_BIT)) - sign + INFINITY_BITS, 2 * INFINITY_BITS + 1);
}
#else
BITS CandidateKeyOf(BITS bits) {
  BITS key = NumberKey(FoldZero(bits));
#if IS_FLOAT && !NAN_FIRST
  key = IsNan(bits) ? (BITS)ELEMENT_MASK : key;
#endif
#if !LARGEST
  key = Flip(key);
#endif
#if IS_FLOAT && NAN_FIRST
  key = IsNan(bits) ? (BITS)ELEMENT_MASK : key;
#endif
  return key;
}
#endif
