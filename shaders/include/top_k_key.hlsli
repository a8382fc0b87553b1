// top_k's keys: the larger, the earlier. Direction, NaN (above +inf) and -0 (equal to +0) are
// folded in. Cheap enough to test every element that is read against a threshold, four at a time.
//   LARGEST  1 when the largest element comes first
#include "include/elements.hlsli"

// KeyOf(BITS) is an element's key, and ElementOfKey(BITS) its element again, unless HidesElement(BITS):
// zeros share a key, and NaNs.

// Words of keys as numbers with a sign, which every processor compares, in the same order.
int4 SignedKeys(uint4 keys) { return (int4)(keys ^ 0x80000000u); }

#if IS_WIDE

BITS KeyOf(BITS bits) {
#if LARGEST
  return NumberKey(bits);
#else
  return ~NumberKey(bits);
#endif
}

BITS ElementOfKey(BITS key) { return KeyOf(key); }  // bits that are flipped, twice

bool HidesElement(BITS key) { return false; }

BITS LargerKey(BITS a, BITS b) {
  uint mask = 0u - (uint)KeyAbove(b, a);
  return a ^ ((a ^ b) & mask);
}

// The best key among the elements of a vector.
BITS BestKey(uint4 v) { return LargerKey(KeyOf(v.xy), KeyOf(v.zw)); }

#else

// A word is an element in the upper bits of 32, zeros below it; a vector, so many sets of 4 words.
#define WORD_SETS (VECTOR_ELEMENTS / 4)
#define WORD_SHIFT (32 - 32 / WORD_SETS)

uint4 WordsOf(uint4 v, uint set) {
  return (v << (WORD_SHIFT - set * (32 / WORD_SETS))) & (ELEMENT_MASK << WORD_SHIFT);
}

#if IS_FLOAT
#define INFINITY_WORD (INFINITY_BITS << WORD_SHIFT)
#endif

// Keys in which NaNs still differ from each other. Their greatest, folded, is the greatest folded.
uint4 RawKeysOf(uint4 words) {
#if IS_FLOAT
  // Sign and magnitude to two's complement, -inf to 0: negative NaNs wrap around to the top.
  uint4 sign = (uint4)((int4)words >> 31);
  uint4 keys = ((words & 0x7FFFFFFFu) ^ sign) - sign + INFINITY_WORD;
#elif IS_SIGNED_INT
  uint4 keys = words ^ 0x80000000u;
#else
  uint4 keys = words;
#endif
#if LARGEST
  return keys;
#else
  return ~keys;
#endif
}

uint4 FoldNans(uint4 keys) {
#if IS_FLOAT && LARGEST
  return min(keys, INFINITY_WORD * 2 + 1);
#elif IS_FLOAT
  return max(keys, ~(INFINITY_WORD * 2 + 1));
#else
  return keys;
#endif
}

BITS KeyOf(BITS bits) { return FoldNans(RawKeysOf((uint4)(bits << WORD_SHIFT))).x; }

BITS ElementOfKey(BITS key) {
#if IS_FLOAT
#if !LARGEST
  key = ~key;
#endif
  int number = (int)(key - INFINITY_WORD);
  uint word = number < 0 ? (uint)-number | 0x80000000u : (uint)number;
#else
  uint word = RawKeysOf((uint4)key).x;  // bits that are flipped, twice
#endif
  return word >> WORD_SHIFT;
}

bool HidesElement(BITS key) {
#if IS_FLOAT
#if !LARGEST
  key = ~key;
#endif
  return key == INFINITY_WORD || key > INFINITY_WORD * 2;
#else
  return false;
#endif
}

BITS LargerKey(BITS a, BITS b) { return max(a, b); }

// The greatest raw keys of the words of a vector.
uint4 BestRawKeys(uint4 v) {
  uint4 best = RawKeysOf(WordsOf(v, 0));
  [unroll] for (uint set = 1; set < WORD_SETS; ++set) best = max(best, RawKeysOf(WordsOf(v, set)));
  return best;
}

BITS BestOfKeys(uint4 raw) {
  uint2 best = max(raw.xy, raw.zw);
  return FoldNans((uint4)max(best.x, best.y)).x;
}

// The best key among the elements of a vector.
BITS BestKey(uint4 v) { return BestOfKeys(BestRawKeys(v)); }

#endif  // IS_WIDE
