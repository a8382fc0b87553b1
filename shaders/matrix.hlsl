// Products of matrices, and convolutions, which are the product of the filter and the patches of the
// image.
//   Multiply  a group computes a tile of the output: 128 x 128 with 256 lanes, or 32 x 32 with 64
//   SumEach   a lane computes an element of the output
//   Join      a lane adds the sums of an element's slots of K
//   RESULT    the type of what is written: FLOAT32 if it is a sum of a slot
//   HALVES    2 or 1: a lane has as many times four rows, and columns, of the tile; 0: no tile
//   THREADS   lanes of a group: of a tile 256 or 64
//   IMAGE     1: B is the patches of an image
//   SPREAD    1: zeros are between the elements of the image
#include "matrix_constants.h"
#define KERNEL_CONSTANTS MatrixConstants
#include "include/dispatch.hlsli"
#include "include/half.hlsli"

Buffer<uint> A : register(t0);
Buffer<uint> B : register(t1);
Buffer<uint> Addend : register(t2);
RWBuffer<uint> Output : register(u0);

#if DATA_TYPE == TYPE_FLOAT16
#define Number(bits) FloatOfHalf(bits)
#else
#define Number(bits) asfloat(bits)
#endif
#if RESULT == TYPE_FLOAT16
#define Bits(number) HalfBits(number)
#else
#define Bits(number) asuint(number)
#endif

// Where the product of a group lies in each tensor.
struct Place {
  uint a;
  uint b;
  uint addend;
  uint output;
};

Place PlaceOf(uint batch) {
  uint outer = batch / c.batches[1].size;
  uint inner = batch % c.batches[1].size;
  Place at;
  at.a = instance.read0 + c.a_base + outer * c.batches[0].a_stride + inner * c.batches[1].a_stride;
  at.b = instance.read1 + c.b_base + outer * c.batches[0].b_stride + inner * c.batches[1].b_stride;
  at.addend = instance.read2 + c.addend_base + outer * c.batches[0].addend_stride +
              inner * c.batches[1].addend_stride;
  at.output = instance.write0 + c.output_base + outer * c.batches[0].output_stride +
              inner * c.batches[1].output_stride;
  return at;
}

// A row of B: k, and in a convolution its channel and tap.
struct Depth {
  uint k;
#if IMAGE
  uint channel;
  uint z;
  uint y;
  uint x;
#endif
};

Depth DepthOf(uint k) {
  Depth at;
  at.k = k;
#if IMAGE
  at.x = k % c.axes[2].taps;
  uint rest = k / c.axes[2].taps;
  at.y = rest % c.axes[1].taps;
  rest /= c.axes[1].taps;
  at.z = rest % c.axes[0].taps;
  at.channel = rest / c.axes[0].taps;
#endif
  return at;
}

// The next row of B that the lane reads. At most one is carried from digit to digit.
Depth NextDepth(Depth at) {
  at.k += c.depth_step;
#if IMAGE
  at.x += c.axes[2].depth_digit;
  uint carry = at.x >= c.axes[2].taps ? 1u : 0u;
  at.x -= carry * c.axes[2].taps;
  at.y += c.axes[1].depth_digit + carry;
  carry = at.y >= c.axes[1].taps ? 1u : 0u;
  at.y -= carry * c.axes[1].taps;
  at.z += c.axes[0].depth_digit + carry;
  carry = at.z >= c.axes[0].taps ? 1u : 0u;
  at.z -= carry * c.axes[0].taps;
  at.channel += c.depth_channels + carry;
#endif
  return at;
}


uint OffsetInA(Depth at) {
#if IMAGE
  return at.channel * c.a_depth_stride + at.z * c.axes[0].filter_stride +
         at.y * c.axes[1].filter_stride + at.x * c.axes[2].filter_stride;
#else
  return at.k * c.a_depth_stride;
#endif
}

// Elements outside are zeros. They are loaded too, from the first element: a branch around each load
// would make a lane wait for one load before the next.
struct Element {
  bool is_inside;
  uint bits;
};

float NumberOf(Element element) {
  float number = Number(element.bits);
  return element.is_inside ? number : 0.0f;
}

Element ElementOfA(uint start, uint row, Depth at) {
  Element element;
  element.is_inside = row < c.rows && at.k < c.depth;
  uint offset = row * c.a_row_stride + OffsetInA(at);
  element.bits = A[start + (element.is_inside ? offset : 0u)];
  return element;
}

// A column of B: its number, or in a convolution what its output adds to the positions of taps.
struct Column {
  uint number;
#if IMAGE
  uint z;
  uint y;
  uint x;
#endif
};

Column ColumnOf(uint number) {
  Column at;
  at.number = number;
#if IMAGE
  uint rest = number / c.axes[2].outputs;
  at.x = number % c.axes[2].outputs * c.axes[2].step - c.axes[2].padding;
  at.y = rest % c.axes[1].outputs * c.axes[1].step - c.axes[1].padding;
  at.z = rest / c.axes[1].outputs * c.axes[0].step - c.axes[0].padding;
#endif
  return at;
}

#if IMAGE
// The position of the input along a dimension. Those that are none are not below its size.
uint PositionOf(MatrixAxis axis, uint start, uint tap) {
  uint position = start + tap * axis.tap_step;
#if SPREAD
  uint quotient = position / axis.spread;
  position = position < 0x80000000u && quotient * axis.spread == position ? quotient : 0xFFFFFFFFu;
#endif
  return position;
}
#endif

Element ElementOfB(uint start, Column column, Depth at) {
  Element element;
  element.is_inside = column.number < c.columns && at.k < c.depth;
#if IMAGE
  uint z = PositionOf(c.axes[0], column.z, at.z);
  uint y = PositionOf(c.axes[1], column.y, at.y);
  uint x = PositionOf(c.axes[2], column.x, at.x);
  element.is_inside = element.is_inside && z < c.axes[0].inputs && y < c.axes[1].inputs &&
                      x < c.axes[2].inputs;
  uint offset = at.channel * c.b_depth_stride + z * c.axes[0].input_stride +
                y * c.axes[1].input_stride + x * c.axes[2].input_stride;
#else
  uint offset = column.number * c.b_column_stride + at.k * c.b_depth_stride;
#endif
  element.bits = B[start + (element.is_inside ? offset : 0u)];
  return element;
}

uint OffsetInOutput(uint column) {
#if IMAGE
  uint rest = column / c.axes[2].outputs;
  return column % c.axes[2].outputs * c.axes[2].output_stride +
         rest % c.axes[1].outputs * c.axes[1].output_stride +
         rest / c.axes[1].outputs * c.axes[0].output_stride;
#else
  return column * c.output_column_stride;
#endif
}

void Store(Place at, uint row, uint column, float sum) {
  if (row >= c.rows || column >= c.columns) return;
  float result = asfloat(c.alpha) * sum;
  if (c.has_addend != 0) {
    result += asfloat(c.beta) * Number(Addend[at.addend + row * c.addend_row_stride +
                                              column * c.addend_column_stride]);
  }
  Output[at.output + row * c.output_row_stride + OffsetInOutput(column)] = Bits(result);
}

// Some drivers end a loop after 65535 rounds.
#define ROUNDS 32768

#if HALVES == 0

// The two elements of a product, and the depth of the next.
#define LOAD(i)                                      \
  Element a##i = ElementOfA(at.a, row, depth);       \
  Element b##i = ElementOfB(at.b, column, depth);    \
  depth = NextDepth(depth);
#define ADD(i) part += NumberOf(a##i) * NumberOf(b##i);

[numthreads(THREADS, 1, 1)]
void SumEach(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  uint results = c.groups.unit_count / c.slots;
  uint slot = c.slots_are_adjacent != 0 ? unit % c.slots : unit / results;
  uint result = c.slots_are_adjacent != 0 ? unit / c.slots : unit % results;
  Column column = ColumnOf(result % c.columns);
  uint rest = result / c.columns;
  uint row = rest % c.rows;
  Place at = PlaceOf(rest / c.rows);
  Depth depth = DepthOf(slot);
  float sum = 0.0f;
  [loop] while (depth.k < c.depth) {
    float part = 0.0f;
    [loop] for (uint round = 0; round < ROUNDS && depth.k < c.depth; ++round) {
      LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
      ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5) ADD(6) ADD(7)
    }
    sum += part;
  }
  at.output += slot * c.slot_stride;
  Store(at, row, column.number, sum);
}

// The sum of a slot; those after the last are zeros.
float SumOf(uint result, uint slot) {
  float sum = asfloat(A[instance.read0 + min(slot, c.slots - 1) * c.slot_stride + result]);
  return slot < c.slots ? sum : 0.0f;
}

[numthreads(THREADS, 1, 1)]
void Join(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint result = EnterGroup(group) * THREADS + lane;
  if (result >= c.groups.unit_count) return;
  float sum = 0.0f;
  [loop] for (uint slot = 0; slot < c.slots; slot += 4) {
    float4 parts = float4(SumOf(result, slot), SumOf(result, slot + 1), SumOf(result, slot + 2),
                          SumOf(result, slot + 3));
    sum += parts.x + parts.y + parts.z + parts.w;
  }
  uint rest = result / c.columns;
  Store(PlaceOf(rest / c.rows), rest % c.rows, result % c.columns, sum);
}

#else

#define SIDE (8 * HALVES)  // lanes along a side of the tile
#define TILE (4 * HALVES * SIDE)
#define RUN (THREADS / MATRIX_BLOCK_DEPTH)  // lanes that load the same row of a block

// Two blocks: one is loaded while the other is multiplied. Element [k * TILE + row or column].
groupshared float a_blocks[2 * MATRIX_BLOCK_DEPTH * TILE];
groupshared float b_blocks[2 * MATRIX_BLOCK_DEPTH * TILE];

// Which element of a block a lane loads first; the others follow at distances.
struct Loads {
  uint k;
  uint first;
  uint distance;
};

Loads LoadsOf(uint lane, uint runs_across) {
  Loads loads;
  loads.k = runs_across != 0 ? lane / RUN : lane % MATRIX_BLOCK_DEPTH;
  loads.first = runs_across != 0 ? lane % RUN : lane / MATRIX_BLOCK_DEPTH;
  loads.distance = RUN;
  return loads;
}

float4 FourOf(uint block, uint k, uint first) {
  uint at = (block * MATRIX_BLOCK_DEPTH + k) * TILE + first;
  return float4(a_blocks[at], a_blocks[at + 1], a_blocks[at + 2], a_blocks[at + 3]);
}

float4 FourColumnsOf(uint block, uint k, uint first) {
  uint at = (block * MATRIX_BLOCK_DEPTH + k) * TILE + first;
  return float4(b_blocks[at], b_blocks[at + 1], b_blocks[at + 2], b_blocks[at + 3]);
}

// The sums of four rows and four columns.
#define EACH_ROW(DO, name, rows, columns) \
  DO(name##0, rows.x, columns)            \
  DO(name##1, rows.y, columns)            \
  DO(name##2, rows.z, columns)            \
  DO(name##3, rows.w, columns)
#define DECLARE(sums, row, columns) float4 sums = float4(0, 0, 0, 0);
#define MULTIPLY(sums, row, columns) sums = mad(row, columns, sums);
// Row `quad` of four, where it is not known to the compiler.
#define PICK(name, quad) \
  ((quad) == 0 ? name##0 : (quad) == 1 ? name##1 : (quad) == 2 ? name##2 : name##3)

void Stage(bool is_upper, uint to, float4 sums) {
  if (is_upper) {
    a_blocks[to] = sums.x;
    a_blocks[to + 1] = sums.y;
    a_blocks[to + 2] = sums.z;
    a_blocks[to + 3] = sums.w;
  } else {
    b_blocks[to] = sums.x;
    b_blocks[to + 1] = sums.y;
    b_blocks[to + 2] = sums.z;
    b_blocks[to + 3] = sums.w;
  }
}

[numthreads(THREADS, 1, 1)]
void Multiply(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint tile = EnterGroup(group);
  uint first_column = tile % c.column_tiles * TILE;
  uint first_row = tile / c.column_tiles % c.row_tiles * TILE;
  uint rest = tile / c.column_tiles / c.row_tiles;
  uint slot = rest % c.slots;
  uint first_depth = slot * c.slot_depth;
  Place at = PlaceOf(rest / c.slots);
  at.output += slot * c.slot_stride;
  Loads a_loads = LoadsOf(lane, c.a_runs_along_rows);
  Loads b_loads = LoadsOf(lane, c.b_runs_along_columns);
  Depth a_depth = DepthOf(first_depth + a_loads.k);
  Depth b_depth = DepthOf(first_depth + b_loads.k);
  uint a_row = first_row + a_loads.first;
  Column column0 = ColumnOf(first_column + b_loads.first);
  Column column1 = ColumnOf(first_column + b_loads.first + RUN);
  Column column2 = ColumnOf(first_column + b_loads.first + 2 * RUN);
  Column column3 = ColumnOf(first_column + b_loads.first + 3 * RUN);
  float4 zero = float4(0, 0, 0, 0);
  EACH_ROW(DECLARE, upper_left, zero, zero)
#if HALVES == 2
  EACH_ROW(DECLARE, upper_right, zero, zero)
  EACH_ROW(DECLARE, lower_left, zero, zero)
  EACH_ROW(DECLARE, lower_right, zero, zero)
#endif
  uint lane_row = lane / SIDE * 4;
  uint lane_column = lane % SIDE * 4;
  uint a_to = a_loads.k * TILE + a_loads.first;
  uint b_to = b_loads.k * TILE + b_loads.first;
  uint depth = min(c.slot_depth, c.depth - first_depth);
  uint blocks = (depth + MATRIX_BLOCK_DEPTH - 1) / MATRIX_BLOCK_DEPTH;
  // Round `block` loads that block, multiplies the one before, and stores it. What the last round
  // loads is not used.
  [loop] for (uint first = 0; first <= blocks; first += ROUNDS) {
    uint end = min(first + ROUNDS, blocks + 1);
    [loop] for (uint block = first; block < end; ++block) {
      uint loaded = block % 2;
      Element a0 = ElementOfA(at.a, a_row, a_depth);
      Element a1 = ElementOfA(at.a, a_row + RUN, a_depth);
      Element a2 = ElementOfA(at.a, a_row + 2 * RUN, a_depth);
      Element a3 = ElementOfA(at.a, a_row + 3 * RUN, a_depth);
      Element b0 = ElementOfB(at.b, column0, b_depth);
      Element b1 = ElementOfB(at.b, column1, b_depth);
      Element b2 = ElementOfB(at.b, column2, b_depth);
      Element b3 = ElementOfB(at.b, column3, b_depth);
      a_depth = NextDepth(a_depth);
      b_depth = NextDepth(b_depth);
      if (block > 0) {
        [unroll] for (uint k = 0; k < MATRIX_BLOCK_DEPTH; ++k) {
          float4 upper = FourOf(1 - loaded, k, lane_row);
          float4 left = FourColumnsOf(1 - loaded, k, lane_column);
          EACH_ROW(MULTIPLY, upper_left, upper, left)
#if HALVES == 2
          float4 lower = FourOf(1 - loaded, k, TILE / 2 + lane_row);
          float4 right = FourColumnsOf(1 - loaded, k, TILE / 2 + lane_column);
          EACH_ROW(MULTIPLY, upper_right, upper, right)
          EACH_ROW(MULTIPLY, lower_left, lower, left)
          EACH_ROW(MULTIPLY, lower_right, lower, right)
#endif
        }
      }
      uint a_at = loaded * MATRIX_BLOCK_DEPTH * TILE + a_to;
      uint b_at = loaded * MATRIX_BLOCK_DEPTH * TILE + b_to;
      a_blocks[a_at] = NumberOf(a0);
      a_blocks[a_at + RUN] = NumberOf(a1);
      a_blocks[a_at + 2 * RUN] = NumberOf(a2);
      a_blocks[a_at + 3 * RUN] = NumberOf(a3);
      b_blocks[b_at] = NumberOf(b0);
      b_blocks[b_at + RUN] = NumberOf(b1);
      b_blocks[b_at + 2 * RUN] = NumberOf(b2);
      b_blocks[b_at + 3 * RUN] = NumberOf(b3);
      GroupMemoryBarrierWithGroupSync();
    }
  }
  // Through groupshared memory, so that adjacent lanes store adjacent columns: one row of each four
  // at a time.
  [loop] for (uint quad = 0; quad < 4; ++quad) {
    uint to = lane / SIDE * TILE + lane_column;
    Stage(true, to, PICK(upper_left, quad));
#if HALVES == 2
    Stage(true, to + TILE / 2, PICK(upper_right, quad));
    Stage(false, to, PICK(lower_left, quad));
    Stage(false, to + TILE / 2, PICK(lower_right, quad));
#endif
    GroupMemoryBarrierWithGroupSync();
    [loop] for (uint i = lane; i < SIDE * TILE; i += THREADS) {
      uint row = first_row + i / TILE * 4 + quad;
      Store(at, row, first_column + i % TILE, a_blocks[i]);
#if HALVES == 2
      Store(at, row + TILE / 2, first_column + i % TILE, b_blocks[i]);
#endif
    }
    GroupMemoryBarrierWithGroupSync();
  }
}

#endif
