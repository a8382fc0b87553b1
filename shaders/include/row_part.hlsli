// The best of some narrow elements of a column and its row, in one word that one comparison orders:
// the element as an integer in the high end, and the row below it, counted so that the wanted one of
// equals is the better.
//   LARGEST  1 for argmax
#include "include/dispatch.hlsli"
#include "include/extreme.hlsli"

#define ROW_MASK ((1u << ELEMENT_SHIFT) - 1u)  // rows are fewer: kMaxTileItems in tuning.h

struct RowPart {
  ORDERED code;
};

// Worse than any element in any row.
RowPart EmptyRowPart() {
  RowPart p;
  p.code = (ORDERED)(LARGEST ? LEAST_ORDERED : GREATEST_ORDERED);
  return p;
}

// What makes the wanted row of equals the better one.
uint RowFlip() { return LARGEST ? ~c.position_mask : c.position_mask; }

// Row 0 is the walk's first one.
uint RowCode(uint row) { return (row + 1) ^ (RowFlip() & ROW_MASK); }
UINTS RowOfCode(UINTS code) { return ((code ^ RowFlip()) - 1) & ROW_MASK; }

#if IS_FLOAT
// NaNs stand beyond the infinity that they beat: those of the other sign wrap around to there.
#define INFINITY_CODE (int)(INFINITY_BITS << ELEMENT_SHIFT)
#if LARGEST
#define NAN_SHIFT (int)(0u - ((SIGN_BIT - INFINITY_BITS) << ELEMENT_SHIFT))
#define NAN_CODE (INFINITY_CODE + NAN_SHIFT + (int)(1u << ELEMENT_SHIFT))
#else
#define NAN_SHIFT (int)((SIGN_BIT - 1u - INFINITY_BITS) << ELEMENT_SHIFT)
#define NAN_CODE (NAN_SHIFT - INFINITY_CODE - (int)(1u << ELEMENT_SHIFT))
#endif

// From sign and magnitude to a signed number, and back: both zeros are 0.
INTS SignedWord(INTS word) { return word < 0 ? (int)0x80000000 - word : word; }
#endif

// An element in the high end of a word; the bits below it are ignored.
RowPart RowPartOf(UINTS word, uint row_code) {
  RowPart p;
  p.code = (ORDERED)(word & ~ROW_MASK);
#if IS_FLOAT
  INTS ordered = SignedWord(p.code) + NAN_SHIFT;
#if LARGEST
  p.code = min(ordered, NAN_CODE);
#else
  p.code = max(ordered, NAN_CODE);
#endif
#endif
  p.code |= (ORDERED)row_code;
  return p;
}

RowPart JoinRows(RowPart a, RowPart b) {
#if LARGEST
  a.code = max(a.code, b.code);
#else
  a.code = min(a.code, b.code);
#endif
  return a;
}

UINTS BitsOfRowPart(RowPart p) {
  UINTS high = (UINTS)p.code & ~ROW_MASK;
#if IS_FLOAT
  UINTS word = (UINTS)SignedWord((INTS)high - NAN_SHIFT);
  return (INTS)high == NAN_CODE ? (UINTS)QUIET_NAN_BITS : word >> ELEMENT_SHIFT;
#else
  return high >> ELEMENT_SHIFT;
#endif
}
