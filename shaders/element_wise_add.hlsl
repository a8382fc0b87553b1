// a + b, element by element. Integers wrap; DATA_TYPE is therefore an unsigned type for signed ones
// too.
//   WIDTH      4: a lane adds the vectors of a row; 1: elements
//   SPREADS_A  of vectors: 1 where all elements of a row add the same element of a
//   SPREADS_B  the same for b
#include "include/elementwise.hlsli"
#include "include/elements.hlsli"
#include "include/half.hlsli"

Buffer<uint4> A : register(t0);
Buffer<uint4> B : register(t1);

#if DATA_TYPE == TYPE_FLOAT32

// Exponents below this one are raised by as much before the addition, and lowered after it: devices
// may take denormals for zero. A number above cannot have a denormal as its sum, nor feel one.
#define RAISED (64u << 23)
#define LEAST_RAISED (RAISED + (1u << 23))  // 2^-62, what the least normal number is raised to

FLOATS Raised(UINTS bits) {
  UINTS magnitude = bits & ~SIGN_BIT;
  FLOATS denormal = asfloat(magnitude + LEAST_RAISED) - asfloat(LEAST_RAISED);
  UINTS raised = magnitude < 0x00800000u ? asuint(denormal) : magnitude + RAISED;
  return asfloat(raised | (bits & SIGN_BIT));
}

UINTS Lowered(FLOATS x) {
  UINTS magnitude = asuint(x) & ~SIGN_BIT;
  UINTS denormal = asuint(asfloat(magnitude) + asfloat(LEAST_RAISED)) - LEAST_RAISED;
  UINTS lowered = magnitude < LEAST_RAISED ? denormal : magnitude - RAISED;
  return lowered | (asuint(x) & SIGN_BIT);
}

UINTS AddWords(UINTS a, UINTS b) {
  UINTS sum = asuint(asfloat(a) + asfloat(b));
  UINTS larger = max(a & ~SIGN_BIT, b & ~SIGN_BIT);
  BOOLS is_small = larger - 1u < RAISED - 1u;  // and not zero
  [branch] if (any(is_small)) {
    sum = is_small ? Lowered(Raised(a) + Raised(b)) : sum;
  }
  return IsNan(sum) ? (UINTS)QUIET_NAN_BITS : sum;
}

#elif DATA_TYPE == TYPE_FLOAT16

// Rounding the sum to 24 bits first changes nothing: 11 are kept.
UINTS AddHalves(UINTS a, UINTS b) {
  UINTS sum = HalfBits(FloatOfHalf(a) + FloatOfHalf(b));
  return IsNan(sum) ? (UINTS)QUIET_NAN_BITS : sum;
}

#if WIDTH == 1
#define AddWords(a, b) AddHalves(a, b)
#else
UINTS AddWords(UINTS a, UINTS b) {
  return AddHalves(a & ELEMENT_MASK, b & ELEMENT_MASK) | (AddHalves(a >> 16, b >> 16) << 16);
}
#endif

#elif IS_WIDE

uint2 AddElement(uint2 a, uint2 b) {
  uint low = a.x + b.x;
  return uint2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}

#if WIDTH == 1
#define AddWords(a, b) AddElement(a, b)
#else
uint4 AddWords(uint4 a, uint4 b) {
  return uint4(AddElement(a.xy, b.xy), AddElement(a.zw, b.zw));
}
#endif

#else

// Elements side by side in a word: their top bits are added without a carry into the next one.
#define TOP_BITS (SIGN_BIT * (0xFFFFFFFFu / ELEMENT_MASK))
UINTS AddWords(UINTS a, UINTS b) {
  return ((a & ~TOP_BITS) + (b & ~TOP_BITS)) ^ ((a ^ b) & TOP_BITS);
}

#endif

#if WIDTH == 4

RWBuffer<uint4> Output : register(u0);

// An element in every place of a vector.
#if IS_WIDE
#define Spread(bits) (bits).xyxy
#else
#define Spread(bits) ((bits) * (0xFFFFFFFFu / ELEMENT_MASK)).xxxx
#endif

uint4 VectorOfA(uint at) {
  uint4 v = A[instance.read0 + at / VECTOR_ELEMENTS];
#if SPREADS_A
  v = Spread(ElementOf(v, at % VECTOR_ELEMENTS));
#endif
  return v;
}

uint4 VectorOfB(uint at) {
  uint4 v = B[instance.read1 + at / VECTOR_ELEMENTS];
#if SPREADS_B
  v = Spread(ElementOf(v, at % VECTOR_ELEMENTS));
#endif
  return v;
}

// Zeroes what follows so many elements, fewer than a vector has.
uint4 KeepElements(uint4 v, uint count) {
  int4 bytes = (int)(count * (16 / VECTOR_ELEMENTS)) - int4(0, 4, 8, 12);
  uint4 partial = (1u << (uint4)(8 * clamp(bytes, 0, 3))) - 1u;
  return v & (bytes >= 4 ? (uint4)0xFFFFFFFFu : partial);
}

[numthreads(THREADS, 1, 1)]
void AddVectors(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  Place at = PlaceOf(unit);
  uint4 sum = AddWords(VectorOfA(at.a), VectorOfB(at.b));
  uint left = c.row_length - at.in_row * VECTOR_ELEMENTS;
  [branch] if (left < VECTOR_ELEMENTS) sum = KeepElements(sum, left);
  Output[instance.write0 + at.output / VECTOR_ELEMENTS] = sum;
}

#else

RWBuffer<BITS> Output : register(u0);

[numthreads(THREADS, 1, 1)]
void AddElements(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  Place at = PlaceOf(unit);
  BITS a = ElementOf(A[instance.read0 + at.a / VECTOR_ELEMENTS], at.a % VECTOR_ELEMENTS);
  BITS b = ElementOf(B[instance.read1 + at.b / VECTOR_ELEMENTS], at.b % VECTOR_ELEMENTS);
  Output[instance.write0 + at.output] = AddWords(a, b);
}

#endif
