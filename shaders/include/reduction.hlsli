// The skeleton of every reduction. A lane walks items of one result (rows) or of one vector of
// neighbouring results (columns), the lanes that share a result combine, one of them stores.
//
// The including shader first defines what is folded:
//   State                                      what a lane carries
//   Identity()                                 a state that has seen nothing
//   Accumulate(inout State, BITS, item, valid) one element; `valid` is false outside the run
//   Combine(inout State, State)                two walks
//   Pack(State) / Unpack(uint4)                a state as a record between passes
//   Finish(State)                              the output's bits, as OUTPUT_BITS
//   CASCADE                                    1 when the order of additions costs accuracy
//   HEAVY                                      1 when an element costs more than its load
//   TRACKS_POSITION                            1 when State remembers its item; then also
//   Settle(inout State, uint position)         after a walk: the item becomes a position
//
// Macros from the plan:
//   LOAD     how an item is read, below
//   RESULT   RESULT_FINAL stores outputs, RESULT_RECORD stores states for a later pass
//   SHARE    1 when several lanes of a group share a result
//   DIMS     reduced dimensions that an item's offset is made of: 0, 1, or 2 for any number. Known
//            here, they cost nothing; asked at run time, they cost a software device half its speed
//   THREADS  lanes of a group
#ifndef OPMILL_REDUCTION_HLSLI_
#define OPMILL_REDUCTION_HLSLI_

#include "include/dispatch.hlsli"
#include "include/elements.hlsli"

#define LOAD_ALIGNED 0  // an item is a vector, all of it wanted
#define LOAD_SHIFTED 1  // rows: the run starts and ends inside vectors; columns: likewise each item
#define LOAD_SCALAR 2   // an item is one element
#define LOAD_RECORD 3   // an item is a record of an earlier pass

#define RESULT_FINAL 0
#define RESULT_RECORD 1

#if LOAD == LOAD_SCALAR || LOAD == LOAD_RECORD
#define SLOTS 1
#else
#define SLOTS VECTOR_ELEMENTS
#endif

#if OUTPUT_WIDE
#define OUTPUT_BITS uint2
#else
#define OUTPUT_BITS uint
#endif

Buffer<uint4> Input : register(t0);
#if RESULT == RESULT_RECORD
RWBuffer<uint4> Records : register(u0);
#else
RWBuffer<OUTPUT_BITS> Output : register(u0);
#endif

uint ItemOffset(uint item) {
#if DIMS == 0
  return 0;
#elif DIMS == 1
  return item * c.reduced[0].input_stride;
#else
  return ReducedInputOffset(item);
#endif
}

// --- rows: all slots of an item belong to one result ---

// Where slot 0 of an item stands in its run. Wraps below zero for the part of the first vector that
// lies before the run, so that one unsigned comparison tells what is inside.
struct RowItem {
  uint vector_index;
  uint run;
  uint first;
};

RowItem FindRowItem(uint base, uint item) {
  RowItem at;
#if DIMS == 0
  at.run = 0;
  uint vector_in_run = item;
#else
  at.run = item / c.run_vectors;
  uint vector_in_run = item % c.run_vectors;
#endif
  uint start = base + ItemOffset(at.run);
  at.vector_index = start / VECTOR_ELEMENTS + vector_in_run;
  at.first = vector_in_run * VECTOR_ELEMENTS - start % VECTOR_ELEMENTS;
  return at;
}

void AccumulateRowItem(inout State states[SLOTS], uint base, uint item) {
#if LOAD == LOAD_RECORD
  Combine(states[0], Unpack(Input[base + item * c.read_item_stride]));
#elif LOAD == LOAD_SCALAR
  uint at = base + ItemOffset(item);
  Accumulate(states[0], ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS), item, true);
#else
  RowItem at = FindRowItem(base, item);
  BITS bits[VECTOR_ELEMENTS];
#if LOAD == LOAD_ALIGNED
  UnpackVector(Input[at.vector_index], bits);
  [unroll] for (uint i = 0; i < SLOTS; ++i) Accumulate(states[i], bits[i], item, true);
#else
  UnpackVector(Input[min(at.vector_index, instance.read0 + c.last_vector)], bits);
  [unroll] for (uint i = 0; i < SLOTS; ++i) {
    Accumulate(states[i], bits[i], item, at.first + i < c.run_length);
  }
#endif
#endif
}

uint RowPosition(uint base, uint item, uint slot) {
#if LOAD == LOAD_SCALAR
  return c.index_base + item;
#else
  RowItem at = FindRowItem(base, item);
  return c.index_base + at.run * c.run_length + at.first + slot;
#endif
}

// The states of one item's slots become one. A tree, since vkd3d's compiler takes exponential time
// for a chain of 16; spelled out, since it miscompiles an unrolled loop whose passes depend on each
// other through an array (tests/conformance holds the case).
State FoldSlots(State states[SLOTS], uint base) {
#if TRACKS_POSITION && LOAD != LOAD_RECORD
  [unroll] for (uint slot = 0; slot < SLOTS; ++slot) {
    Settle(states[slot], RowPosition(base, states[slot].item, slot));
  }
#endif
#if SLOTS > 8
  Combine(states[0], states[8]);
  Combine(states[1], states[9]);
  Combine(states[2], states[10]);
  Combine(states[3], states[11]);
  Combine(states[4], states[12]);
  Combine(states[5], states[13]);
  Combine(states[6], states[14]);
  Combine(states[7], states[15]);
#endif
#if SLOTS > 4
  Combine(states[0], states[4]);
  Combine(states[1], states[5]);
  Combine(states[2], states[6]);
  Combine(states[3], states[7]);
#endif
#if SLOTS > 2
  Combine(states[0], states[2]);
  Combine(states[1], states[3]);
#endif
#if SLOTS > 1
  Combine(states[0], states[1]);
#endif
  return states[0];
}

// Items that a lane loads before it looks whether more are to come.
#if HEAVY
#define UNROLL 1
#elif LOAD == LOAD_SCALAR || LOAD == LOAD_RECORD || SLOTS == 16
#define UNROLL 2
#elif SLOTS == 8
#define UNROLL 4
#else
#define UNROLL 8
#endif

void AccumulateRow(inout State states[SLOTS], uint base, uint begin, uint end, uint step) {
  uint item = begin;
  [loop] while (item < end && end - item > (UNROLL - 1) * step) {
    [unroll] for (uint u = 0; u < UNROLL; ++u) AccumulateRowItem(states, base, item + u * step);
    item += UNROLL * step;
  }
  [loop] for (; item < end; item += step) AccumulateRowItem(states, base, item);
}

uint StopAfter(uint item, uint count, uint end) { return end - item > count ? item + count : end; }

// Sums fold blocks of 8 items, then blocks of 8 of those: the error grows with the logarithm of the
// length, whatever the values (docs/operators.md has the bound).
State WalkRow(uint base, uint begin, uint end, uint step) {
#if CASCADE
  uint item = begin;
  State total = Identity();
  [loop] while (item < end) {
    State middle = Identity();
    uint middle_end = StopAfter(item, 64 * step, end);
    [loop] while (item < middle_end) {
      State inner[SLOTS];
      [unroll] for (uint i = 0; i < SLOTS; ++i) inner[i] = Identity();
      AccumulateRow(inner, base, item, StopAfter(item, 8 * step, middle_end), step);
      item += 8 * step;
      Combine(middle, FoldSlots(inner, base));
    }
    Combine(total, middle);
  }
  return total;
#else
  State states[SLOTS];
  [unroll] for (uint i = 0; i < SLOTS; ++i) states[i] = Identity();
  AccumulateRow(states, base, begin, end, step);
  return FoldSlots(states, base);
#endif
}

// --- columns: every slot of an item belongs to a result of its own ---

// The vector that starts at any element.
uint4 LoadShifted(uint element) {
  uint index = element / VECTOR_ELEMENTS;
  uint4 a = Input[index];
  uint4 b = Input[min(index + 1, instance.read0 + c.last_vector)];
  uint bit = (element % VECTOR_ELEMENTS) * (128 / VECTOR_ELEMENTS);
  if ((bit & 64) != 0) {
    a = uint4(a.zw, b.xy);
    b = uint4(b.zw, 0, 0);
  }
  if ((bit & 32) != 0) {
    a = uint4(a.yzw, b.x);
    b.x = b.y;
  }
#if VECTOR_ELEMENTS > 4
  uint shift = bit & 31;
  uint4 next = uint4(a.yzw, b.x);
  if (shift != 0) a = (a >> shift) | (next << (32 - shift));
#endif
  return a;
}

void AccumulateColumnItem(inout State states[SLOTS], uint base, uint item) {
  uint at = base + ItemOffset(item);
#if LOAD == LOAD_SCALAR
  Accumulate(states[0], ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS), item, true);
#else
  BITS bits[VECTOR_ELEMENTS];
#if LOAD == LOAD_ALIGNED
  UnpackVector(Input[at / VECTOR_ELEMENTS], bits);
#else
  UnpackVector(LoadShifted(at), bits);
#endif
  [unroll] for (uint i = 0; i < SLOTS; ++i) Accumulate(states[i], bits[i], item, true);
#endif
}

void AccumulateColumns(inout State states[SLOTS], uint base, uint begin, uint end, uint step) {
  uint item = begin;
  [loop] while (item < end && end - item > (UNROLL - 1) * step) {
    [unroll] for (uint u = 0; u < UNROLL; ++u) AccumulateColumnItem(states, base, item + u * step);
    item += UNROLL * step;
  }
  [loop] for (; item < end; item += step) AccumulateColumnItem(states, base, item);
}

void CombineSlots(inout State into[SLOTS], State other[SLOTS]) {
  [unroll] for (uint i = 0; i < SLOTS; ++i) Combine(into[i], other[i]);
}

void WalkColumns(inout State states[SLOTS], uint base, uint begin, uint end, uint step) {
#if CASCADE
  uint item = begin;
  [loop] while (item < end) {
    State middle[SLOTS];
    [unroll] for (uint i = 0; i < SLOTS; ++i) middle[i] = Identity();
    uint middle_end = StopAfter(item, 64 * step, end);
    [loop] while (item < middle_end) {
      State inner[SLOTS];
      [unroll] for (uint j = 0; j < SLOTS; ++j) inner[j] = Identity();
      AccumulateColumns(inner, base, item, StopAfter(item, 8 * step, middle_end), step);
      item += 8 * step;
      CombineSlots(middle, inner);
    }
    CombineSlots(states, middle);
  }
#else
  AccumulateColumns(states, base, begin, end, step);
#if TRACKS_POSITION
  [unroll] for (uint slot = 0; slot < SLOTS; ++slot) {
    Settle(states[slot], c.index_base + states[slot].item);
  }
#endif
#endif
}

// --- what lanes of a group do together ---

#if SHARE
groupshared uint4 shared_states[THREADS];

// Lanes `stride` apart hold parts of one result; the first of them gets the whole.
void ShareAcrossLanes(inout State state, uint lane, uint part, uint stride) {
  shared_states[lane] = Pack(state);
  [loop] for (uint parts = (1u << c.lane_bits) / 2; parts > 0; parts /= 2) {
    GroupMemoryBarrierWithGroupSync();
    if (part < parts) {
      Combine(state, Unpack(shared_states[lane + parts * stride]));
      shared_states[lane] = Pack(state);
    }
  }
  GroupMemoryBarrierWithGroupSync();
}
#endif

void StoreResult(State state, uint result, uint output_offset, uint split) {
#if RESULT == RESULT_FINAL
  Output[instance.write0 + c.output_base + output_offset] = Finish(state);
#else
  uint at = c.record_base + result * c.record_stride + split * c.split_stride;
  Records[instance.write0 + at] = Pack(state);
#endif
}

[numthreads(THREADS, 1, 1)]
void ReduceRows(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint split = flat_group % c.splits;
  uint lanes = 1u << c.lane_bits;
  uint part = lane & (lanes - 1);
  uint result = (flat_group / c.splits) * (THREADS >> c.lane_bits) + (lane >> c.lane_bits);

  State state = Identity();
  uint output_offset = 0;
  if (result < c.unit_count) {
    Offsets at = KeptOffsets(result);
    output_offset = at.output;
    uint begin = split * c.split_items;
    uint end = min(begin + c.split_items, c.item_count);
#if LOAD == LOAD_RECORD
    uint base = instance.read0 + c.input_base + result * c.read_stride;
#else
    uint base = instance.read0 * VECTOR_ELEMENTS + c.input_base + at.input;
#endif
    state = WalkRow(base, begin + part, end, lanes);
  }
#if SHARE
  ShareAcrossLanes(state, lane, part, 1);
#endif
  if (result < c.unit_count && part == 0) StoreResult(state, result, output_offset, split);
}

[numthreads(THREADS, 1, 1)]
void ReduceColumns(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint split = flat_group % c.splits;
  uint units = THREADS >> c.lane_bits;
  uint part = lane / units;
  uint unit = (flat_group / c.splits) * units + lane % units;
  uint outer = unit / c.column_units;
  uint column = (unit % c.column_units) * SLOTS;

  State states[SLOTS];
  [unroll] for (uint i = 0; i < SLOTS; ++i) states[i] = Identity();
  uint output_offset = 0;
  if (unit < c.unit_count) {
    Offsets at = KeptOffsets(outer);
    output_offset = at.output;
    uint base = instance.read0 * VECTOR_ELEMENTS + c.input_base + at.input +
                column * c.column_input_stride;
    uint begin = split * c.split_items;
    uint end = min(begin + c.split_items, c.item_count);
    WalkColumns(states, base, begin + part, end, 1u << c.lane_bits);
  }
  [unroll] for (uint slot = 0; slot < SLOTS; ++slot) {
#if SHARE
    ShareAcrossLanes(states[slot], lane, part, units);
#endif
    if (unit < c.unit_count && part == 0 && column + slot < c.columns) {
      StoreResult(states[slot], outer * c.columns + column + slot,
                  output_offset + (column + slot) * c.column_output_stride, split);
    }
  }
}

#endif  // OPMILL_REDUCTION_HLSLI_
