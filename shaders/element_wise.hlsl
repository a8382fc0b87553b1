// A chain of element-wise operations, whose text kernels/operators/elementwise/ generates.
//   WIDTH         4: a lane computes a quad of a row's elements; 1: an element
//   OUTPUT_BYTES  of an element of the output
#include "elementwise_constants.h"
#define KERNEL_CONSTANTS ElementwiseConstants
#include "include/dispatch.hlsli"

#if WIDTH == 4
#define UINTS uint4
#define INTS int4
#define FLOATS float4
#define BOOLS bool4
#else
#define UINTS uint
#define INTS int
#define FLOATS float
#define BOOLS bool
#endif
#define INLINE

// Opaque to compilers, so that operations are not contracted across it.
FLOATS Keep(FLOATS x) { return asfloat(asuint(x) ^ c.groups.zero); }

#include "include/numbers.hlsli"
#include "include/functions.hlsli"

Buffer<uint4> Input0 : register(t0);
Buffer<uint4> Input1 : register(t1);
Buffer<uint4> Input2 : register(t2);
Buffer<uint4> Input3 : register(t3);
Buffer<uint4> Input4 : register(t4);
Buffer<uint4> Input5 : register(t5);
Buffer<uint4> Input6 : register(t6);
Buffer<uint4> Input7 : register(t7);

// Offsets of a unit's first element in each tensor's view, and the elements of its row from there on.
struct Place {
  uint input0;
  uint input1;
  uint input2;
  uint input3;
  uint input4;
  uint input5;
  uint input6;
  uint input7;
  uint output;
  uint left;
};

#define EACH_INPUT(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define STEP(i) at.input##i += position * dim.stride##i;
#define START(i) at.input##i = c.base##i;

// The outermost dimension needs no division.
Place PlaceOf(uint unit) {
  Place at;
  EACH_INPUT(START)
  at.output = c.output_base;
  uint in_row = unit;
  uint position = unit;
  ElementwiseDim dim = c.dims[0];
  [branch] if (c.rank > 1) {
    uint rest = unit;
    in_row = unit % c.dims[c.rank - 1].size;
    for (uint d = c.rank - 1; d > 0; --d) {
      dim = c.dims[d];
      position = rest % dim.size;
      rest /= dim.size;
      EACH_INPUT(STEP)
      at.output += position * dim.output_stride;
    }
    position = rest;
    dim = c.dims[0];
  }
  EACH_INPUT(STEP)
  at.output += position * dim.output_stride;
  at.left = c.row_length - in_row * WIDTH;
  return at;
}

// v[word], where `word` is not known to the compiler.
uint WordOf(uint4 v, uint word) {
  uint4 kept = v & (0u - (uint4)(word == uint4(0, 1, 2, 3)));
  return kept.x | kept.y | kept.z | kept.w;
}

// The vector of 16 bytes with the element at.input##i, of so many to a vector.
#define VECTOR(i, elements) Input##i[instance.read##i + at.input##i / elements]
// One element, in every place of a value.
#define ONE8(i) \
  ((UINTS)((WordOf(VECTOR(i, 16), at.input##i / 4 % 4) >> (at.input##i % 4 * 8)) & 0xFFu))
#define ONE16(i) \
  ((UINTS)((WordOf(VECTOR(i, 8), at.input##i / 2 % 4) >> (at.input##i % 2 * 16)) & 0xFFFFu))
#define ONE32(i) ((UINTS)WordOf(VECTOR(i, 4), at.input##i % 4))
#define ONE64(i, Long)                                                    \
  Long((UINTS)WordOf(VECTOR(i, 2), at.input##i % 2 * 2),                  \
       (UINTS)WordOf(VECTOR(i, 2), at.input##i % 2 * 2 + 1))

#if WIDTH == 4
// The four elements from a multiple of four on.
#define QUAD8(i) ((WordOf(VECTOR(i, 16), at.input##i / 4 % 4) >> uint4(0, 8, 16, 24)) & 0xFFu)
#define QUAD16(i) Halves(VECTOR(i, 8), 0u - (at.input##i / 4 % 2))
#define QUAD32(i) VECTOR(i, 4)
#define SECOND(i) Input##i[instance.read##i + at.input##i / 2 + (uint)(at.left > 2)]
#define QUAD64(i, Long)                                               \
  Long(uint4(VECTOR(i, 2).xz, SECOND(i).xz), uint4(VECTOR(i, 2).yw, SECOND(i).yw))

uint4 Halves(uint4 v, uint second) {
  uint2 words = (v.zw & second) | (v.xy & ~second);
  return (words.xxyy >> uint4(0, 16, 0, 16)) & 0xFFFFu;
}
#endif

#if OUTPUT_BYTES == 8
#define RESULT ULONGS
#else
#define RESULT UINTS
#endif

// RESULT Compute(Place at)
#include "generated"

#if WIDTH == 1

#if OUTPUT_BYTES == 8
RWBuffer<uint2> Output : register(u0);
#else
RWBuffer<uint> Output : register(u0);
#endif

void Store(Place at, RESULT result) {
#if OUTPUT_BYTES == 8
  Output[instance.write0 + at.output] = uint2(result.low, result.high);
#elif OUTPUT_BYTES == 4
  Output[instance.write0 + at.output] = result;
#else
  // What does not fit a view of small elements would be saturated.
  Output[instance.write0 + at.output] = result & ((1u << (8 * OUTPUT_BYTES)) - 1u);
#endif
}

#else

#if OUTPUT_BYTES == 1
RWBuffer<uint> Output : register(u0);
#elif OUTPUT_BYTES == 2
RWBuffer<uint2> Output : register(u0);
#else
RWBuffer<uint4> Output : register(u0);
#endif

// Zeroes what follows the row.
uint4 Kept(uint4 v, uint left) { return Select(left > uint4(0, 1, 2, 3), v, (uint4)0u); }

void Store(Place at, RESULT result) {
#if OUTPUT_BYTES == 8
  uint4 low = Kept(result.low, at.left);
  uint4 high = Kept(result.high, at.left);
  uint first = instance.write0 + at.output / 2;
  Output[first] = uint4(low.x, high.x, low.y, high.y);
  [branch] if (at.left > 2) Output[first + 1] = uint4(low.z, high.z, low.w, high.w);
#else
  uint4 v = Kept(result, at.left);
  uint to = instance.write0 + at.output / 4;
#if OUTPUT_BYTES == 1
  v = (v & 0xFFu) << uint4(0, 8, 16, 24);
  Output[to] = v.x | v.y | v.z | v.w;
#elif OUTPUT_BYTES == 2
  v &= 0xFFFFu;
  Output[to] = uint2(v.x | (v.y << 16), v.z | (v.w << 16));
#else
  Output[to] = v;
#endif
#endif
}

#endif

[numthreads(THREADS, 1, 1)]
void Map(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  Place at = PlaceOf(unit);
  Store(at, Compute(at));
}
