// The skeleton of every reduction. A lane walks items of one result (rows) or of some vectors of
// neighbouring results (columns), the lanes that share a result combine, one of them stores.
//
// The including shader first defines what is folded. Elements become parts, the parts of a block of
// items join, and only then does the state of the walk change:
//   Part, Join(Part, Part)                     what elements fold into
//   PartOf(BITS)                               one element
//   EMPTY_ELEMENT                              an element whose part changes no other
//   HIGH_ELEMENTS                              1 when PartOf takes UnpackVectorHigh's words
//   State                                      what a lane carries
//   Identity()                                 a state that has seen nothing
//   Take(inout State, Part, item)              a block that starts with this item
//   Combine(inout State, State)                two walks
//   Pack(State) / Unpack(uint4)                a state as a record between passes
//   Finish(State)                              the output's bits, as OUTPUT_BITS
//   CASCADE                                    1 when the order of additions costs accuracy
//   TRACKS_POSITION                            1 when State remembers its item; then also
//   Look(inout uint found, State, BITS, position, valid)   finds the position in the item's block
// or, with FOLDS_GROUPS 1, in place of parts, Take and Look:
//   TakeGroup(inout State, float[GROUP])       elements, -inf where there is none
//
// Macros from the plan:
//   LOAD     how an item is read, below
//   RESULT   RESULT_FINAL stores outputs, RESULT_RECORD stores states for a later pass
//   SHARE    1 when several lanes of a group share a result
//   TILE     columns: vectors that a lane walks side by side
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

#ifndef FOLDS_GROUPS
#define FOLDS_GROUPS 0
#endif

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

// Items whose elements are folded in registers before the walk's state changes. Rows: more than two
// are only spilled and read again; columns: the states of all slots change, which costs more.
#if FOLDS_GROUPS
#define ROW_BLOCK (GROUP / SLOTS)
#define COLUMN_BLOCK GROUP
#else
#define ROW_BLOCK 2
#define COLUMN_BLOCK 8
#endif

// Sums fold blocks, then chains of so many blocks, then those: the error grows with the logarithm of
// the length, whatever the values (docs/operators.md has the bound).
#define CHAIN_BLOCKS 32

uint StopAfter(uint item, uint count, uint end) { return end - item > count ? item + count : end; }

#if LOAD != LOAD_RECORD

// The elements of an item as PartOf wants them.
void ItemElements(uint4 v, uint at, out BITS elements[SLOTS]) {
#if LOAD == LOAD_SCALAR
  elements[0] = ElementOf(v, at % VECTOR_ELEMENTS);
#if HIGH_ELEMENTS
  elements[0] <<= ELEMENT_SHIFT;
#endif
#elif HIGH_ELEMENTS
  UnpackVectorHigh(v, elements);
#else
  UnpackVector(v, elements);
#endif
}

#endif

#include "include/reduce_rows.hlsli"
#if LOAD != LOAD_RECORD
#include "include/reduce_columns.hlsli"
#endif

// --- what lanes of a group do together ---

// Lanes that share a result.
#if SHARE
#define LANES (1u << c.lane_bits)
#else
#define LANES 1u
#endif

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
  uint part = lane & (LANES - 1);
  uint result = (flat_group / c.splits) * (THREADS / LANES) + lane / LANES;

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
    state = WalkRow(base, begin + part, end, LANES);
  }
#if SHARE
  ShareAcrossLanes(state, lane, part, 1);
#endif
  if (result < c.unit_count && part == 0) StoreResult(state, result, output_offset, split);
}

#if LOAD != LOAD_RECORD
[numthreads(THREADS, 1, 1)]
void ReduceColumns(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint units = THREADS / LANES;
  uint part = lane / units;
  // Neighbouring columns of the same items come one after another: they share pages.
  uint unit_groups = (c.unit_count + units * TILE - 1) / (units * TILE);
  uint split = flat_group / unit_groups;
  // Groups that only fill the grid up stand behind the last unit.
  uint unit_group = split < c.splits ? flat_group % unit_groups : unit_groups;
  uint first_unit = unit_group * units * TILE + lane % units;

  State states[TILE_SLOTS];
  [unroll] for (uint i = 0; i < TILE_SLOTS; ++i) states[i] = Identity();
  uint bases[TILE];
  uint output_offsets[TILE];
  // Lanes beyond the last unit walk it as well, and store nothing.
  [unroll] for (uint t = 0; t < TILE; ++t) {
    uint unit = min(first_unit + t * units, c.unit_count - 1);
    Offsets at = KeptOffsets(unit / c.column_units);
    bases[t] = instance.read0 * VECTOR_ELEMENTS + c.input_base + at.input +
               (unit % c.column_units) * SLOTS * c.column_input_stride;
    output_offsets[t] = at.output;
  }
  uint begin = split * c.split_items;
  uint end = min(begin + c.split_items, c.item_count);
  WalkColumns(states, bases, begin + part, end, LANES);

  [unroll] for (uint tile = 0; tile < TILE; ++tile) {
    uint unit = first_unit + tile * units;
    uint outer = unit / c.column_units;
    uint column = (unit % c.column_units) * SLOTS;
    [unroll] for (uint slot = 0; slot < SLOTS; ++slot) {
#if SHARE
      ShareAcrossLanes(states[tile * SLOTS + slot], lane, part, units);
#endif
      if (unit < c.unit_count && part == 0 && column + slot < c.columns) {
        StoreResult(states[tile * SLOTS + slot], outer * c.columns + column + slot,
                    output_offsets[tile] + (column + slot) * c.column_output_stride, split);
      }
    }
  }
}
#endif

#endif  // OPMILL_REDUCTION_HLSLI_
