// A lane computes the result of a window: its largest element, with the position of the first one,
// or its mean. The columns of a window (all elements of one width) are summed first, then the sums
// of its columns, in order.
//   FUNCTION     POOLING_MAX, POOLING_MAX_WITH_INDICES or POOLING_AVERAGE
//   INDEX_BYTES  4 or 8, of POOLING_MAX_WITH_INDICES
#include "pooling_constants.h"
#define KERNEL_CONSTANTS PoolingConstants
#include "include/dispatch.hlsli"
#include "include/elements.hlsli"
#include "include/half.hlsli"

Buffer<uint4> Input : register(t0);
RWBuffer<BITS> Output : register(u0);

BITS ElementAt(uint at) {
  return ElementOf(Input[instance.read0 + at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
}

#if FUNCTION == POOLING_AVERAGE

#if DATA_TYPE == TYPE_FLOAT16
#define FloatOf(bits) FloatOfHalf(bits)
#define BitsOf(x) HalfBits(x)
#else
#define FloatOf(bits) asfloat(bits)
#define BitsOf(x) asuint(x)
#endif

struct Pooled {
  float sum;
  float column;
  uint count;
};
Pooled Empty() {
  Pooled pooled = {0.0f, 0.0f, 0};
  return pooled;
}
Pooled With(Pooled pooled, uint at, uint position) {
  pooled.column += FloatOf(ElementAt(at));
  ++pooled.count;
  return pooled;
}
Pooled AfterColumn(Pooled pooled) {
  pooled.sum += pooled.column;
  pooled.column = 0.0f;
  return pooled;
}
void Store(Pooled pooled, uint output, uint indices) {
  uint count = c.divisor != 0 ? c.divisor : max(pooled.count, 1u);
  Output[output] = BitsOf(pooled.sum / (float)count);
}

#else

#if FUNCTION == POOLING_MAX_WITH_INDICES
#if INDEX_BYTES == 8
RWBuffer<uint2> Indices : register(u1);
#define IndexOf(position) uint2(position, 0)
#else
RWBuffer<uint> Indices : register(u1);
#define IndexOf(position) (position)
#endif
#endif

struct Pooled {
  BITS key;
  uint position;
};
// No position is that far, and no element has a smaller key.
Pooled Empty() {
  Pooled pooled;
#if IS_FLOAT
  pooled.key = NumberKey(INFINITY_BITS | SIGN_BIT);
#else
  pooled.key = (BITS)0;
#endif
  pooled.position = 0xFFFFFFFFu;
  return pooled;
}
// NaN is above all numbers.
BITS KeyAt(uint at) {
  BITS bits = ElementAt(at);
  BITS key = NumberKey(bits);
#if IS_FLOAT
  if (IsNan(bits)) key = ELEMENT_MASK;
#endif
  return key;
}
Pooled With(Pooled pooled, uint at, uint position) {
  BITS key = KeyAt(at);
  bool is_first = position < pooled.position;
  if (KeyAbove(key, pooled.key) || (KeyEqual(key, pooled.key) && is_first)) {
    pooled.key = key;
    pooled.position = position;
  }
  return pooled;
}
Pooled AfterColumn(Pooled pooled) { return pooled; }
void Store(Pooled pooled, uint output, uint indices) {
  BITS bits = NumberOfKey(pooled.key);
#if IS_FLOAT
  if (pooled.key == ELEMENT_MASK) bits = QUIET_NAN_BITS;
#endif
  Output[output] = bits;
#if FUNCTION == POOLING_MAX_WITH_INDICES
  Indices[indices] = IndexOf(pooled.position);
#endif
}

#endif

// The elements of a window along a dimension that may be in the input: element k is at
// start + k * dilation, where start may wrap.
struct Elements {
  uint start;
  uint begin;
};
Elements ElementsOf(PoolingDim dim, uint result) {
  uint padded = (dim.first + result) * dim.step;
  uint before = padded < dim.padding ? dim.padding - padded : 0;
  Elements elements;
  elements.start = padded - dim.padding;
  elements.begin = before / dim.dilation + (before % dim.dilation != 0 ? 1u : 0u);
  return elements;
}

[numthreads(THREADS, 1, 1)]
void Pool(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  uint results[5];
  uint output = instance.write0 + c.output_base;
  uint indices = instance.write1 + c.indices_base;
  uint rest = unit;
  [unroll] for (uint i = 5; i > 0; --i) {
    PoolingDim dim = c.dims[i - 1];
    uint result = i > 1 ? rest % dim.count : rest;
    rest = i > 1 ? rest / dim.count : 0;
    results[i - 1] = result;
    output += result * dim.output_stride;
    indices += result * dim.indices_stride;
  }
  uint batch = c.dims[0].first + results[0];
  uint channel = c.dims[1].first + results[1];
  uint start = c.input_base + batch * c.dims[0].input_stride + channel * c.dims[1].input_stride;
  uint position = batch * c.dims[0].position_stride + channel * c.dims[1].position_stride;
  PoolingDim depth = c.dims[2];
  PoolingDim height = c.dims[3];
  PoolingDim width = c.dims[4];
  Elements in_depth = ElementsOf(depth, results[2]);
  Elements in_height = ElementsOf(height, results[3]);
  Elements in_width = ElementsOf(width, results[4]);
  Pooled pooled = Empty();
  [loop] for (uint k = in_width.begin; k < width.window; ++k) {
    uint x = in_width.start + k * width.dilation;
    if (x >= width.input_size) break;
    [loop] for (uint j = in_depth.begin; j < depth.window; ++j) {
      uint z = in_depth.start + j * depth.dilation;
      if (z >= depth.input_size) break;
      uint plane = start + x * width.input_stride + z * depth.input_stride;
      uint plane_position = position + x + z * depth.position_stride;
      [loop] for (uint h = in_height.begin; h < height.window; ++h) {
        uint y = in_height.start + h * height.dilation;
        if (y >= height.input_size) break;
        pooled = With(pooled, plane + y * height.input_stride,
                      plane_position + y * height.position_stride);
      }
    }
    pooled = AfterColumn(pooled);
  }
  Store(pooled, output, indices);
}
