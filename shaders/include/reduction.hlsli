// The skeleton of every reduction. A lane walks items of one result (rows) or of a vector of
// neighbouring results (columns), the lanes that share a result combine, one of them stores.
//
// The including shader first defines what is folded. Elements become parts, the parts of a block of
// items join, and only then does the state of the walk change. In columns all of it is of WIDTH
// elements side by side (elements.hlsli), and compilers have a quarter as much to do:
//   Part, Join(Part, Part)                     what elements fold into
//   PartOf(BITS)                               an element
//   EMPTY_ELEMENT                              an element whose part changes no other
//   HIGH_ELEMENTS                              1 when PartOf takes UnpackVectorHigh's words
//   State                                      what a lane carries
//   Identity()                                 a state that has seen nothing
//   Take(inout State, Part, item)              a block that starts with this item
//   Combine(inout State, State)                two walks
//   STATE_WORDS                                1 or 2: words that a state is kept and shown in
//   FirstWord(State), SecondWord(State), StateOf(UINTS, UINTS)   those, and back
//   Pack(State) / Unpack(uint4)                in their place where elements are wide: a record
//   Finish(State)                              the output's bits, or the position
//   PARTS_ARE_ELEMENTS                         1 when State has but a Part, and that is an element,
//                                              whose bits BitsOfPart(Part) has
//   CASCADE                                    1 when the order of additions costs accuracy
//   TRACKS_POSITION                            1 when State remembers its item; then also
//   Ordered(position)                          as records hold it
//   Look(inout UINTS found, State, BITS, position)   finds the position in the item's block
//   PARTS_HAVE_ROWS                            1 when tiles fold row_part.hlsli's RowPart, which needs
//                                              no such look; then also
//   StateOfRowPart(RowPart, first item)        with the position already found
// or, with FOLDS_GROUPS 1, in place of parts, Take and Look:
//   TakeGroup(inout State, float[GROUP])       rows: elements, -inf where there is none
//   TakeFour(inout State, FLOATS x 4)          columns: four items
//   TakeOne(inout State, FLOATS)               one item
//
// Macros from the plan:
//   LOAD     how an item is read: LOAD_* of reduction_constants.h
//   RESULT   RESULT_FINAL stores outputs, RESULT_RECORD stores states for a later pass
//   SHARE    1 when several lanes of a group share a result
//   WIDTH    columns: slots that words of one vector stand for, 4 or 1 (elements.hlsli)
//   DIMS     reduced dimensions that an item's offset is made of: 0, 1, or 2 for any number. Known
//            here, they cost nothing; asked at run time, they cost a software device half its speed
//   ITEMS    the same for the number of items, if there are few and a lane walks all of them:
//            without a loop, which costs a software device as much as some loads. 0: any number
//   THREADS  lanes of a group
#include "include/elements.hlsli"
#include "include/items.hlsli"
#include "include/kept_dims.hlsli"

#define RESULT_FINAL 0
#define RESULT_RECORD 1

#ifndef FOLDS_GROUPS
#define FOLDS_GROUPS 0
#endif

#ifndef PARTS_ARE_ELEMENTS
#define PARTS_ARE_ELEMENTS 0
#endif

#ifndef PARTS_HAVE_ROWS
#define PARTS_HAVE_ROWS 0
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

// Position `flat` of the reduced dimensions, row-major.
uint ReducedInputOffset(uint flat) {
  uint offset = 0;
  uint rest = flat;
  for (uint d = c.reduced_rank; d > 1; --d) {
    uint size = CONSTANTS.reduced[d - 1].size;
    offset += (rest % size) * CONSTANTS.reduced[d - 1].input_stride;
    rest /= size;
  }
  return offset + rest * c.reduced[0].input_stride;
}

uint ItemOffset(uint item) {
#if DIMS == 0
  return 0;
#elif DIMS == 1
  return item * c.reduced[0].input_stride;
#else
  return ReducedInputOffset(item);
#endif
}

// Lanes that share a result.
#if SHARE
#define LANES (1u << c.lane_bits)
#else
#define LANES 1u
#endif

// Rows: items whose elements are folded in registers before the walk's state changes. More than two
// are only spilled and read again.
#if FOLDS_GROUPS
#define ROW_BLOCK GROUP_ITEMS
#else
#define ROW_BLOCK 2
#endif

// Sums fold blocks, then chains of blocks, then chains of those: with every number that a sum passes
// on its way through a chain its error may grow by half a unit in the last place, and the bound
// (docs/operators.md) allows two units for every doubling of the length, and eight. (SumsThatRoundUp
// of the conformance test goes that far.)
#define CHAIN_BLOCKS 32
#define CHAIN_RECORDS 16
#define COLUMN_CHAIN 64  // items
#if FOLDS_GROUPS
#define TILE_CHAIN 128  // items, which four at a time are folded into a state
#else
#define TILE_CHAIN 256  // c.tile_rows at a time
#endif

uint StopAfter(uint item, uint count, uint end) { return end - item > count ? item + count : end; }

#if LOAD != LOAD_RECORD && WIDTH == 1

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

// Where a record, which stands between passes, has the second word.
#if TRACKS_POSITION
#define SECOND z
#else
#define SECOND y
#endif

#if STATE_WORDS == 1
#define SECOND_WORD(s) (UINTS)0
#else
#define SECOND_WORD(s) SecondWord(s)
#endif

#if !IS_WIDE
uint4 RecordOf(State s, uint component) {
  uint4 record = uint4(COMPONENT(FirstWord(s), component), 0, 0, 0);
  record.SECOND = COMPONENT(SECOND_WORD(s), component);
  return record;
}

#if WIDTH == 1
uint4 Pack(State s) { return RecordOf(s, 0); }
State Unpack(uint4 record) { return StateOf(record.x, record.SECOND); }
#endif
#else
#define RecordOf(state, component) Pack(state)
#endif

// A state, or WIDTH of them, as words.
struct Words {
  uint4 first;
#if WIDTH == 4 && STATE_WORDS == 2
  uint4 second;
#endif
};

Words WordsOf(State s) {
  Words words;
#if WIDTH == 1
  words.first = Pack(s);
#else
  words.first = FirstWord(s);
#if STATE_WORDS == 2
  words.second = SecondWord(s);
#endif
#endif
  return words;
}

State StateOfWords(Words words) {
#if WIDTH == 1
  return Unpack(words.first);
#elif STATE_WORDS == 2
  return StateOf(words.first, words.second);
#else
  return StateOf(words.first, words.first);
#endif
}

#if WIDTH == 1
#include "include/reduce_rows.hlsli"
#endif

// Of vectors of elements that are not wide, rows or columns, by WIDTH.
#define FOR_COLUMNS (LOAD != LOAD_RECORD && (WIDTH == 4 || SLOTS <= 2))
#if FOR_COLUMNS
#include "include/reduce_columns.hlsli"
#if !SHARE
#include "include/reduce_tiles.hlsli"
#endif
#endif

// --- what lanes of a group do together ---

#if SHARE
groupshared uint4 shared_first[THREADS];
#if WIDTH == 4 && STATE_WORDS == 2
groupshared uint4 shared_second[THREADS];
#endif

void Show(uint lane, State state) {
  Words words = WordsOf(state);
  shared_first[lane] = words.first;
#if WIDTH == 4 && STATE_WORDS == 2
  shared_second[lane] = words.second;
#endif
}

State Shown(uint lane) {
  Words words;
  words.first = shared_first[lane];
#if WIDTH == 4 && STATE_WORDS == 2
  words.second = shared_second[lane];
#endif
  return StateOfWords(words);
}

// Lanes `stride` apart hold parts of one result; the first of them gets the whole.
void ShareAcrossLanes(inout State state, uint lane, uint part, uint stride) {
  Show(lane, state);
  [loop] for (uint parts = (1u << c.lane_bits) / 2; parts > 0; parts /= 2) {
    GroupMemoryBarrierWithGroupSync();
    if (part < parts) {
      Combine(state, Shown(lane + parts * stride));
      Show(lane, state);
    }
  }
  GroupMemoryBarrierWithGroupSync();
}
#endif

#if RESULT == RESULT_RECORD
void StoreRecord(uint4 record, uint result, uint split) {
  uint at = c.record_base + result * c.record_stride + split * c.split_stride;
  Records[instance.write0 + at] = record;
}
#else
void StoreOutput(OUTPUT_BITS bits, uint output_offset) {
  Output[instance.write0 + c.output_base + output_offset] = bits;
}
#endif

#if TRACKS_POSITION
#define FINISHED UINTS
#else
#define FINISHED BITS
#endif

#if OUTPUT_WIDE && TRACKS_POSITION
#define OUTPUT_OF(finished) uint2(finished, 0)
#else
#define OUTPUT_OF(finished) finished
#endif

#if WIDTH == 1
void StoreResult(State state, uint result, uint output_offset, uint split) {
#if RESULT == RESULT_RECORD
  StoreRecord(Pack(state), result, split);
#else
  StoreOutput(OUTPUT_OF(Finish(state)), output_offset);
#endif
}
#endif

// Units that a group's lanes take at a time. Lanes that share a result do so once.
#define TURN (THREADS / LANES)

#if WIDTH == 1
State ReduceRow(uint result, uint input_offset, uint split, uint part) {
  uint begin = split * c.split_items;
  uint end = min(begin + c.split_items, c.item_count);
  uint first = begin + part;
  uint step = LANES;
#if SHARE
  if (c.lane_items != 0) {
    first = begin + part * c.lane_items;
    end = min(first + c.lane_items, end);
    step = 1;
  }
#endif
#if LOAD == LOAD_RECORD
  uint base = instance.read0 + result * c.read_stride;
#else
  uint base = instance.read0 * VECTOR_ELEMENTS + c.input_base + input_offset;
#endif
  return WalkRow(base, first, end, step);
}

[numthreads(THREADS, 1, 1)]
void ReduceRows(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint split = flat_group % c.splits;
#if SHARE
  uint part = lane & (LANES - 1);
  uint result = (flat_group / c.splits) * TURN + lane / LANES;
  State state = Identity();
  Offsets at = KeptOffsets(min(result, c.groups.unit_count - 1));
  if (result < c.groups.unit_count) state = ReduceRow(result, at.input, split, part);
  ShareAcrossLanes(state, lane, part, 1);
  if (result < c.groups.unit_count && part == 0) StoreResult(state, result, at.output, split);
#else
  uint first = (flat_group / c.splits) * c.groups.lane_units * TURN;
  uint end = min(first + c.groups.lane_units * TURN, c.groups.unit_count);
  [loop] for (uint result = first + lane; result < end; result += TURN) {
    Offsets at = KeptOffsets(result);
    StoreResult(ReduceRow(result, at.input, split, 0), result, at.output, split);
  }
#endif
}
#endif

#if FOR_COLUMNS
// A unit's place in the outer kept dimensions, and along the innermost one.
struct ColumnUnit {
  uint outer;
  uint inner;
};

ColumnUnit FindColumnUnit(uint unit) {
  ColumnUnit at;
  at.outer = 0;
#if SHORT_WALKS  // a division costs a software device as much as some loads
  [branch] if (c.groups.unit_count > c.column_units)
#endif
  at.outer = unit / c.column_units;
  at.inner = unit - at.outer * c.column_units;
  return at;
}

// Where item 0 of a unit starts.
uint ColumnBase(uint unit) {
  ColumnUnit at = FindColumnUnit(unit);
  return instance.read0 * VECTOR_ELEMENTS + c.input_base + KeptOffsets(at.outer).input +
         at.inner * SLOTS * c.column_input_stride;
}

void StoreColumns(State state, uint outer, uint column, uint set, uint split) {
#if RESULT == RESULT_FINAL
  uint output_offset = KeptOffsets(outer).output;
  FINISHED finished = Finish(state);
#endif
  [unroll] for (uint i = 0; i < WIDTH; ++i) {
    uint at = column + SlotOf(set, i);
    if (at < c.columns) {
#if RESULT == RESULT_FINAL
      StoreOutput(OUTPUT_OF(COMPONENT(finished, i)), output_offset + at * c.column_output_stride);
#else
      StoreRecord(RecordOf(state, i), outer * c.columns + at, split);
#endif
    }
  }
}

// What lanes have found of a set of `unit`.
void SettleSet(Words words, uint base, uint unit, uint set, uint end, uint lane, uint split) {
  State state = StateOfWords(words);
  uint part = lane / TURN;
#if TRACKS_POSITION
  if (SEARCHES_BLOCKS) {
    SettleColumns(state, base, set, ROWS, end, LANES);
  } else {
    state.item = state.item == NOWHERE ? state.item : Ordered(c.index_base + state.item);
  }
#endif
#if SHARE
  ShareAcrossLanes(state, lane, part, TURN);
#endif
  if (unit < c.groups.unit_count && part == 0) {
    ColumnUnit at = FindColumnUnit(unit);
    StoreColumns(state, at.outer, at.inner * SLOTS, set, split);
  }
}

// Units from `first` on, one of each lane, or of lanes that share it.
void ReduceUnits(uint first, uint split, uint lane) {
  uint unit = first + lane % TURN;
  // Lanes beyond the last unit walk it as well, and store nothing.
  uint base = ColumnBase(min(unit, c.groups.unit_count - 1));
  uint begin = split * c.split_items;
  uint end = min(begin + c.split_items, c.item_count);
  States states = WalkColumns(base, begin + lane / TURN, end, LANES);

#if WIDTH == 1
  // Two at most. Reached by number, both were the second by vkd3d's compiler.
#define SETTLE(i) SettleSet(WordsOf(states.s##i), base, unit, i, end, lane, split);
  EACH_SET(SETTLE)
#elif SETS == 1
  SettleSet(WordsOf(states.s0), base, unit, 0, end, lane, split);
#else
  // One place for all sets, which are reached by number here alone.
  Words sets[SETS];
#define KEEP(i) sets[i] = WordsOf(states.s##i);
  EACH_SET(KEEP)
  [loop] for (uint set = 0; set < SETS; ++set) {
    SettleSet(sets[set], base, unit, set, end, lane, split);
  }
#endif
}

[numthreads(THREADS, 1, 1)]
void ReduceColumns(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint wide = c.groups.lane_units * TURN;
  // Neighbouring columns of the same items come one after another: they share pages.
  uint unit_groups = (c.groups.unit_count + wide - 1) / wide;
  uint split = flat_group / unit_groups;
  // Groups that only fill the grid up stand behind the last unit.
  uint first = split < c.splits ? flat_group % unit_groups * wide : c.groups.unit_count;
#if SHARE
  ReduceUnits(first, split, lane);
#else
  uint end = min(first + wide, c.groups.unit_count);
  [loop] for (; first < end; first += TURN) ReduceUnits(first, split, lane);
#endif
}

#if !SHARE
// Groups of a split follow one another: tiles of the innermost kept dimension, then the next ones.
[numthreads(THREADS, 1, 1)]
void ReduceTiles(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint wide = c.groups.lane_units * THREADS;
  uint tiles = (c.column_units + wide - 1) / wide;
  uint groups = c.groups.unit_count / c.column_units * tiles;
  uint split = flat_group / groups;
  // Groups that only fill the grid up.
  if (split >= c.splits) return;
  uint outer = flat_group % groups / tiles;
  uint first = flat_group % tiles * wide;
  TileColumns columns;
  columns.first = first + lane;
  columns.count = min(c.groups.lane_units, (c.column_units - first + THREADS - 1) / THREADS);
  columns.base = instance.read0 * VECTOR_ELEMENTS + c.input_base + KeptOffsets(outer).input;
  columns.begin = split * c.split_items;
  uint end = min(columns.begin + c.split_items, c.item_count);
  WalkTile(columns, end);

  [loop] for (uint t = 0; t < columns.count; ++t) {
    uint unit = columns.first + t * THREADS;
#if TRACKS_POSITION && !PARTS_HAVE_ROWS
#define SETTLE_TILE(state, i) SettleColumns(state, TileBase(columns, t), i, c.tile_rows, end, 1);
#else
#define SETTLE_TILE(state, i)
#endif
#define STORE_TILE(i)                                                              \
  {                                                                                \
    State state = TileState(t, i, columns.begin);                                  \
    SETTLE_TILE(state, i)                                                          \
    if (unit < c.column_units) StoreColumns(state, outer, unit * SLOTS, i, split); \
  }
#if WIDTH == 1 || SETS == 1
    EACH_SET(STORE_TILE)
#else
    [loop] for (uint set = 0; set < SETS; ++set) STORE_TILE(set)
#endif
  }
}
#endif
#endif
