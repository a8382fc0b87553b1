// The skeleton of every reduction. Lanes walk items of a unit, which is a result or a vector of
// neighboring results; the lanes that share a unit join what they found; one of them stores.
//
// The including shader first defines what is folded, WIDTH elements side by side:
//   Part, EmptyPart(), Join(Part, Part)        what elements fold into
//   PartOf(BITS), EMPTY_ELEMENT                an element's part; an element that changes no part
//   HIGH_ELEMENTS                              1 when PartOf takes elements in the high end of words
//   Words, WordsOf(Part), PartOfWords(Words)   a part as words (reduction_words.hlsli)
//   Finish(Part)                               the output's bits, or the position
// With OWN_TAKE 1, Take(inout Part, BITS x 4, BOOLS x 4, turn) in place of PartOf takes four elements,
// of which those count that are inside. With TRACKS_POSITION 1, lanes walk with a Walked in place of
// a Part, which knows the turn in which an element came (arg_reduce.hlsl).
//
// Macros from the plan:
//   LOAD, RESULT  reduction_constants.h
//   DIMS          1 when a division finds an item: in rows of several runs, and where there are
//                 several reduced dimensions
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

// --- the walk ---

#if LOAD == LOAD_RECORD

Part PartOfRecord(uint4 record) {
  Words words;
  words.a = record.x;
#if PART_WORDS > 1
  words.b = record.y;
#endif
#if PART_WORDS > 2
  words.c = record.z;
#endif
  return PartOfWords(words);
}

// In chains, since a sum may lose half a unit in the last place with each record of one.
#define CHAIN 16

Part Walk(Task task) {
  Part total = EmptyPart();
  uint base = instance.read0 + task.unit * c.read_stride;
  uint item = task.first;
  [loop] while (item < task.end) {
    Part chain = EmptyPart();
    uint stop = min(task.end, item + CHAIN * task.step);
    [loop] for (; item < stop; item += task.step) {
      chain = Join(chain, PartOfRecord(Input[base + item * c.read_item_stride]));
    }
    total = Join(total, chain);
  }
  return total;
}

#else

// Position `flat` of the reduced dimensions, or of those outside of a run, row-major.
uint ReducedOffset(uint flat) {
#if DIMS == 0
  return flat * c.reduced[0].input_stride;
#else
  uint offset = 0;
  uint rest = flat;
  for (uint d = c.reduced_rank; d > 1; --d) {
    uint size = c.reduced[d - 1].size;
    offset += (rest % size) * c.reduced[d - 1].input_stride;
    rest /= size;
  }
  return offset + rest * c.reduced[0].input_stride;
#endif
}

// Where an item's slot 0 stands: in the view, and in rows also in its run. The latter wraps below zero
// for the part of a vector that lies before the run, so that one comparison tells what is inside.
struct Place {
  uint at;
  uint in_run;
};

Place FindItem(uint base, uint item) {
  Place place;
#if !IS_ROW
  place.at = base + ReducedOffset(item);
  place.in_run = 0;
#else
#if DIMS == 0
  uint start = base;
  uint vector_in_run = item;
#else
  uint run = item / c.run_vectors;
  uint start = base + ReducedOffset(run);
  uint vector_in_run = item - run * c.run_vectors;
#endif
  place.in_run = vector_in_run * VECTOR_ELEMENTS - start % VECTOR_ELEMENTS;
  place.at = start + place.in_run;
#endif
  return place;
}

// The vector that starts at any element.
uint4 LoadShifted(uint at) {
  uint index = at / VECTOR_ELEMENTS;
  uint4 a = Input[index];
  uint4 b = Input[min(index + 1, instance.read0 + c.last_vector)];
  uint bit = (at % VECTOR_ELEMENTS) * ELEMENT_BITS;
  bool two = (bit & 64) != 0;
  bool one = (bit & 32) != 0;
  a = two ? uint4(a.zw, b.xy) : a;
  b.xy = two ? b.zw : b.xy;
  uint4 next = uint4(a.yzw, b.x);
  b.x = one ? b.y : b.x;
  a = one ? next : a;
#if VECTOR_ELEMENTS > 4
  next = uint4(a.yzw, b.x);
  // Shifts by 32 would not shift.
  uint shift = bit & 31;
  a = (a >> shift) | ((next << 1) << (31 - shift));
#endif
  return a;
}

uint4 LoadItem(Place place) {
#if LOAD == LOAD_COLUMN_SHIFTED
  return LoadShifted(place.at);
#elif LOAD == LOAD_ROW_SHIFTED
  return Input[min(place.at / VECTOR_ELEMENTS, instance.read0 + c.last_vector)];
#else
  return Input[place.at / VECTOR_ELEMENTS];
#endif
}

// The elements of one set of an item, one of each word of the vector.
BITS SetElements(uint4 v, Place place, uint set) {
#if LOAD == LOAD_SCALAR
  BITS bits = ElementOf(v, place.at % VECTOR_ELEMENTS);
#if HIGH_ELEMENTS
  bits <<= ELEMENT_SHIFT;
#endif
  return bits;
#elif IS_WIDE
  return uint2(v[2 * set], v[2 * set + 1]);
#elif HIGH_ELEMENTS
  return v << (ELEMENT_SHIFT - set * ELEMENT_BITS);
#else
  return (v >> (set * ELEMENT_BITS)) & ELEMENT_MASK;
#endif
}

// The slot that component `i` of a set stands for.
#define SLOT_OF(set, i) ((i) * SETS + (set))

// Which elements of a set count, of an item below the end.
BOOLS Inside(bool before_end, Place place, uint set) {
#if LOAD == LOAD_ROW_SHIFTED
  return before_end && place.in_run + SLOT_OF((UINTS)set, COMPONENTS) < c.run_length;
#else
  return (BOOLS)before_end;
#endif
}

#if TRACKS_POSITION
#define WALKED Walked
#define NOTHING_WALKED NothingWalked()
#else
#define WALKED Part
#define NOTHING_WALKED EmptyPart()
#endif

#if !OWN_TAKE
Part CountedPart(BITS bits, BOOLS inside) { return PartOf(inside ? bits : (BITS)EMPTY_ELEMENT); }

void Take(inout Part p, BITS x0, BITS x1, BITS x2, BITS x3, BOOLS in0, BOOLS in1, BOOLS in2,
          BOOLS in3, uint turn) {
  Part first = Join(CountedPart(x0, in0), CountedPart(x1, in1));
  Part second = Join(CountedPart(x2, in2), CountedPart(x3, in3));
  p = Join(p, Join(first, second));
}
#endif

// Of each set of the slots.
struct WalkedSets {
#define MEMBER(i) WALKED s##i;
  EACH_SET(MEMBER)
};

// Four items at a time, whose loads do not wait for each other.
WalkedSets Walk(Task task) {
  WalkedSets sets;
#define BEGIN(i) sets.s##i = NOTHING_WALKED;
  EACH_SET(BEGIN)
  uint turn = 0;
  uint item = task.first;
  [loop] while (item < task.end) {
    uint left = task.end - item;
    bool in1 = left > task.step;
    bool in2 = left > 2 * task.step;
    bool in3 = left > 3 * task.step;
    Place p0 = FindItem(task.base, item);
    Place p1 = FindItem(task.base, in1 ? item + task.step : item);
    Place p2 = FindItem(task.base, in2 ? item + 2 * task.step : item);
    Place p3 = FindItem(task.base, in3 ? item + 3 * task.step : item);
    uint4 v0 = LoadItem(p0);
    uint4 v1 = LoadItem(p1);
    uint4 v2 = LoadItem(p2);
    uint4 v3 = LoadItem(p3);
#define TAKE(i)                                                                               \
  Take(sets.s##i, SetElements(v0, p0, i), SetElements(v1, p1, i), SetElements(v2, p2, i),     \
       SetElements(v3, p3, i), Inside(true, p0, i), Inside(in1, p1, i), Inside(in2, p2, i),   \
       Inside(in3, p3, i), turn);
    EACH_SET(TAKE)
    turn += 4;
    item += 4 * task.step;
  }
  return sets;
}

#if TRACKS_POSITION
Part PartOfWalked(Walked walked, Task task, uint set) {
  UINTS item = task.first + TurnOf(walked) * task.step;
#if !IS_ROW
  UINTS position = item;
#else
#if DIMS == 0
  UINTS before = (UINTS)0;
  UINTS start = (UINTS)task.base;
#else
  UINTS run = item / c.run_vectors;
  item -= run * c.run_vectors;
  UINTS before = run * c.run_length;
  UINTS start = (UINTS)task.base;
  [unroll] for (uint i = 0; i < WIDTH; ++i) {
    COMPONENT(start, i) += ReducedOffset(COMPONENT(run, i));
  }
#endif
  UINTS position =
      before + item * VECTOR_ELEMENTS - start % VECTOR_ELEMENTS + SLOT_OF((UINTS)set, COMPONENTS);
#endif
  Part part;
  part.key = KeyOf(walked);
  part.position = HasWalked(walked) ? Ordered(c.index_base + position) : (UINTS)NOWHERE;
  return part;
}
#else
#define PartOfWalked(walked, task, set) walked
#endif

#endif  // LOAD

// --- what lanes of a group do together ---

// Rows have one part a lane, whose components are all alike; columns have WIDTH.
#if IS_COLUMN
#define SHARED UINTS
#define SHARED_OF(word) word
#else
#define SHARED uint
#define SHARED_OF(word) COMPONENT(word, 0)
#endif

groupshared SHARED shared_a[THREADS];
#if PART_WORDS > 1
groupshared SHARED shared_b[THREADS];
#endif
#if PART_WORDS > 2
groupshared SHARED shared_c[THREADS];
#endif

void Show(uint lane, Part part) {
  Words words = WordsOf(part);
  shared_a[lane] = SHARED_OF(words.a);
#if PART_WORDS > 1
  shared_b[lane] = SHARED_OF(words.b);
#endif
#if PART_WORDS > 2
  shared_c[lane] = SHARED_OF(words.c);
#endif
}

Part Shown(uint lane) {
  Words words;
  words.a = (UINTS)shared_a[lane];
#if PART_WORDS > 1
  words.b = (UINTS)shared_b[lane];
#endif
#if PART_WORDS > 2
  words.c = (UINTS)shared_c[lane];
#endif
  return PartOfWords(words);
}

// The first of the lanes that share a unit gets the whole. Each step leaves an eighth of the parts.
void Share(inout Part mine, uint lane, uint part) {
  [loop] for (uint parts = 1u << c.lane_bits; parts > 1; parts = (parts + 7) / 8) {
    uint rest = (parts + 7) / 8;
    Show(lane, mine);
    GroupMemoryBarrierWithGroupSync();
    if (part < rest) {
      [loop] for (uint other = rest; part + other < parts; other += rest) {
        mine = Join(mine, Shown(lane + (other << c.part_shift)));
      }
    }
    GroupMemoryBarrierWithGroupSync();
  }
}

void Store(Words words, uint result, uint output_offset, uint split, uint component, Part part) {
#if RESULT == RESULT_RECORD
  uint4 record = uint4(COMPONENT(words.a, component), 0, 0, 0);
#if PART_WORDS > 1
  record.y = COMPONENT(words.b, component);
#endif
#if PART_WORDS > 2
  record.z = COMPONENT(words.c, component);
#endif
  uint at = c.record_base + result * c.record_stride + split * c.split_stride;
  Records[instance.write0 + at] = record;
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

void Settle(Task task, Part part, uint lane, uint outer, uint column, uint set) {
  Share(part, lane, task.part);
  if (task.exists && task.part == 0) {
    uint output_offset = KeptOffsets(outer).output;
    [unroll] for (uint i = 0; i < WIDTH; ++i) {
      uint at = column + SLOT_OF(set, i);
      if (at < c.columns) {
        Store(WordsOf(part), outer * c.columns + at, output_offset + at * c.column_output_stride,
              task.split, i, part);
      }
    }
  }
}

#elif WIDTH == 4

#if PART_WORDS > 1
#define TURN_WORDS(words, order) words.a = words.a.order; words.b = words.b.order;
#else
#define TURN_WORDS(words, order) words.a = words.a.order;
#endif

// All components get the whole.
Part JoinComponents(Part part) {
  Words words = WordsOf(part);
  TURN_WORDS(words, zwxy)
  part = Join(part, PartOfWords(words));
  words = WordsOf(part);
  TURN_WORDS(words, yxwz)
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
  WalkedSets sets = Walk(task);
#define SETTLE(i) Settle(task, PartOfWalked(sets.s##i, task, i), lane, outer, column, i);
  EACH_SET(SETTLE)
#else
  Offsets at = KeptOffsets(task.unit);
#if LOAD == LOAD_RECORD
  Part part = Walk(task);
#else
  task.base = instance.read0 * VECTOR_ELEMENTS + c.input_base + at.input;
  WalkedSets sets = Walk(task);
  Part part = EmptyPart();
#define JOIN_SET(i) part = Join(part, PartOfWalked(sets.s##i, task, i));
  EACH_SET(JOIN_SET)
  part = JoinComponents(part);
#endif
  Share(part, lane, task.part);
  if (task.exists && task.part == 0) Store(WordsOf(part), task.unit, at.output, task.split, 0, part);
#endif
}
