// The skeleton of every reduction. Each lane reads items of a unit, which is a result or a vector
// of adjacent results. The lanes that share a unit join their parts, and one of them stores the
// result.
//
// The including shader first defines how elements are folded, WIDTH of them side by side:
//   Part, EmptyPart(), Join(Part, Part)        the state that elements are folded into
//   Take(inout Part, BITS x 4, BOOLS x 4, turn)
//                                              folds those of four elements that are inside
//   HIGH_ELEMENTS                              1 if Take needs elements in the high bits of words
//   PREPARE_ITEM(uint4)                        optional: what Take sees instead of an item's vector
//   Words, WordsOf(Part), PartOfWords(Words)   a part as words (reduction_words.hlsli)
//   Finish(Part)                               the bits of the output, or the position
// With TRACKS_POSITION 1, a lane folds into a Folded instead of a Part; it holds the turn of its
// element, which falls with the position: the number of items that the lane took before, times SETS,
// plus SETS - 1 less its set (arg_reduce.hlsl).
//
// Macros from the plan:
//   LOAD, RESULT  reduction_constants.h
//   DIMS          1 if items are found by division: in rows of several runs, and with several
//                 reduced dimensions
//   JOINS         1 if groups share results: each leaves its part, and the last one joins all
//   THREADS       lanes of a group
#include "include/kept_dims.hlsli"
#include "include/each_set.hlsli"
#include "include/task.hlsli"

Buffer<uint4> Input : register(t0);
#if RESULT == RESULT_RECORD
RWBuffer<uint4> Records : register(u0);
#elif RESULT == RESULT_PAIR
RWBuffer<uint2> Output : register(u0);
#else
RWBuffer<uint> Output : register(u0);
#endif
#if JOINS
RWBuffer<uint> Partials : register(u1);
#endif

// Adds at most this many parts one after another: each addition may lose half a unit in the last
// place.
#define CHAIN 16

// --- folding ---

#if LOAD == LOAD_RECORD

Part PartOfRecord(uint4 record) {
  Words words;
#define WORD_OF_RECORD(w) words.w = record.w;
  EACH_WORD(WORD_OF_RECORD)
  return PartOfWords(words);
}

Part Fold(Task task) {
  Part total = EmptyPart();
  uint base = instance.read0 + task.unit;
  uint item = task.first;
  [loop] while (item < task.end) {
    Part chain = EmptyPart();
    uint stop = min(task.end, item + CHAIN * task.step);
    [loop] for (; item < stop; item += task.step) {
      chain = Join(chain, PartOfRecord(Input[base + item * c.record_stride]));
    }
    total = Join(total, chain);
  }
  return total;
}

#else

#include "include/reduction_items.hlsli"

#ifndef PREPARE_ITEM
#define PREPARE_ITEM(v) v
#endif

#if TRACKS_POSITION
#include "include/reduction_position.hlsli"
#else
#define Folded Part
#define NothingFolded EmptyPart
#define PartOfFolded(folded, task) folded
#endif

// In rows all sets of slots are folded into one part.
#if IS_ROW
#define OF_SET(i) s0
#else
#define OF_SET(i) s##i
#endif
// Not by EACH_SET: Microsoft's compiler passes no name of a macro on to another macro.
#if SETS == 1 || IS_ROW
#define EACH_FOLDED(DO) DO(0)
#elif SETS == 2
#define EACH_FOLDED(DO) DO(0) DO(1)
#else
#define EACH_FOLDED(DO) DO(0) DO(1) DO(2) DO(3)
#endif

struct FoldedSets {
#define MEMBER(i) Folded s##i;
  EACH_FOLDED(MEMBER)
};

#define ELEMENTS(i, n) SetElements(v##n, p##n, i)
#define COUNTS(i, n) Inside(in##n, p##n, i)
#define TAKE(i)                                                                        \
  Take(sets.OF_SET(i), ELEMENTS(i, 0), ELEMENTS(i, 1), ELEMENTS(i, 2), ELEMENTS(i, 3), \
       COUNTS(i, 0), COUNTS(i, 1), COUNTS(i, 2), COUNTS(i, 3), turn + SETS - 1 - i);

// Reads four items at a time, so that their loads are in flight together.
FoldedSets Fold(Task task) {
  FoldedSets sets;
#define BEGIN(i) sets.s##i = NothingFolded();
  EACH_FOLDED(BEGIN)
  uint turn = 0;
  uint item = task.first;
  [loop] while (item < task.end) {
    uint left = task.end - item;
    bool in0 = true;
    bool in1 = left > task.step;
    bool in2 = left > 2 * task.step;
    bool in3 = left > 3 * task.step;
    Place p0 = FindItem(task.base, item);
    Place p1 = FindItem(task.base, in1 ? item + task.step : item);
    Place p2 = FindItem(task.base, in2 ? item + 2 * task.step : item);
    Place p3 = FindItem(task.base, in3 ? item + 3 * task.step : item);
    uint4 v0 = PREPARE_ITEM(LoadItem(p0));
    uint4 v1 = PREPARE_ITEM(LoadItem(p1));
    uint4 v2 = PREPARE_ITEM(LoadItem(p2));
    uint4 v3 = PREPARE_ITEM(LoadItem(p3));
    EACH_SET(TAKE)
    turn += 4 * SETS;
    item += 4 * task.step;
  }
  return sets;
}

#endif  // LOAD

// --- what lanes of a group do together ---

#include "include/reduction_share.hlsli"

#if JOINS
#include "include/reduction_join.hlsli"
#endif

void Store(Part part, uint result, uint output_offset, uint component) {
#if RESULT == RESULT_RECORD
  Words words = WordsOf(part);
  uint4 record = 0;
#define WORD_TO_RECORD(w) record.w = COMPONENT(words.w, component);
  EACH_WORD(WORD_TO_RECORD)
  Records[instance.write0 + c.record_base + result] = record;
#else
  uint at = instance.write0 + c.output_base + output_offset;
#if TRACKS_POSITION
  uint position = COMPONENT(Finish(part), component);
#if RESULT == RESULT_PAIR
  Output[at] = uint2(position, 0);
#else
  Output[at] = position;
#endif
#elif IS_WIDE
  Output[at] = Finish(part);
#else
  Output[at] = COMPONENT(Finish(part), component);
#endif
#endif
}

#if IS_COLUMN

void StoreColumns(Task task, Part part, uint outer, uint column, uint set) {
  if (task.exists && task.part == 0) {
    uint output_offset = KeptOffsets(outer).output;
    [unroll] for (uint i = 0; i < WIDTH; ++i) {
      uint at = column + SLOT_OF(set, i);
      if (at < c.columns) {
        Store(part, outer * c.columns + at, output_offset + at * c.column_output_stride, i);
      }
    }
  }
}

#elif WIDTH == 4

// Joins the components of a part; each component of the result holds the whole.
Part JoinComponents(Part part) {
  Words words = WordsOf(part);
#define SWAP_HALVES(w) words.w = words.w.zwxy;
  EACH_WORD(SWAP_HALVES)
  part = Join(part, PartOfWords(words));
  words = WordsOf(part);
#define SWAP_NEIGHBORS(w) words.w = words.w.yxwz;
  EACH_WORD(SWAP_NEIGHBORS)
  return Join(part, PartOfWords(words));
}

#else
#define JoinComponents(part) part
#endif

[numthreads(THREADS, 1, 1)]
void Reduce(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Task task = FindTask(EnterGroup(group), lane);
#if IS_COLUMN
  uint outer = task.unit / c.column_units;
  uint column = (task.unit - outer * c.column_units) * SLOTS;
  task.base = instance.read0 * VECTOR_ELEMENTS + c.input_base + KeptOffsets(outer).input + column;
  FoldedSets sets = Fold(task);
#define PART_OF_SET(i) PartOfFolded(sets.s##i, task)
#if JOINS
#define LEAVE(i) LeavePart(task, ShareParts(PART_OF_SET(i), lane, task.part), i);
  EACH_SET(LEAVE)
  uint splits = SplitsToJoin(task, lane);
#define SETTLE(i)                                                                              \
  StoreColumns(task, ShareParts(JoinSplits(task, splits, i), lane, task.part), outer, column, i);
  if (splits == 0) task.exists = false;
#else
#define SETTLE(i) \
  StoreColumns(task, ShareParts(PART_OF_SET(i), lane, task.part), outer, column, i);
#endif
  EACH_SET(SETTLE)
#else
  Offsets at = KeptOffsets(task.unit);
#if LOAD == LOAD_RECORD
  Part part = Fold(task);
#else
  task.base = instance.read0 * VECTOR_ELEMENTS + c.input_base + at.input;
  FoldedSets sets = Fold(task);
  Part part = JoinComponents(PartOfFolded(sets.s0, task));
#endif
  part = ShareParts(part, lane, task.part);
#if JOINS
  LeavePart(task, part, 0);
  uint splits = SplitsToJoin(task, lane);
  part = ShareParts(JoinSplits(task, splits, 0), lane, task.part);
  if (splits == 0) task.exists = false;
#endif
  if (task.exists && task.part == 0) Store(part, task.unit, at.output, 0);
#endif
}
