// Of reduction.hlsli: the walk over rows. All slots of an item belong to one result.

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

#if LOAD == LOAD_RECORD

State WalkRow(uint base, uint begin, uint end, uint step) {
  State total = Identity();
  uint item = begin;
  [loop] while (item < end) {
    State chain = Identity();
    uint stop = StopAfter(item, CHAIN_RECORDS * step, end);
    [loop] for (; item < stop; item += step) {
      Combine(chain, Unpack(Input[base + item * c.read_item_stride]));
    }
    Combine(total, chain);
  }
  return total;
}

#else

uint4 LoadRowItem(uint base, uint item, out uint at) {
#if LOAD == LOAD_SCALAR
  at = base + ItemOffset(item);
  return Input[at / VECTOR_ELEMENTS];
#else
  RowItem found = FindRowItem(base, item);
  at = found.first;
#if LOAD == LOAD_ALIGNED
  return Input[found.vector_index];
#else
  return Input[min(found.vector_index, instance.read0 + c.last_vector)];
#endif
#endif
}

// Of a vector whose slot 0 stands at `first` of its run.
bool InRun(uint first, uint slot) {
#if LOAD == LOAD_SHIFTED
  return first + slot < c.run_length;
#else
  return true;
#endif
}

#if FOLDS_GROUPS

// `whole`: all items of the block lie before the end.
void TakeRowBlock(inout State s, uint base, uint item, uint end, uint step, bool whole) {
  float x[GROUP];
  [unroll] for (uint b = 0; b < ROW_BLOCK; ++b) {
    bool inside = whole || end - item > b * step;
    uint at;
    uint4 v = LoadRowItem(base, inside ? item + b * step : item, at);
    BITS elements[SLOTS];
    ItemElements(v, at, elements);
    [unroll] for (uint i = 0; i < SLOTS; ++i) {
      x[b * SLOTS + i] = inside && InRun(at, i) ? FloatOf(elements[i]) : -FLOAT_INFINITY;
    }
  }
  [unroll] for (uint place = ROW_BLOCK * SLOTS; place < GROUP; ++place) x[place] = -FLOAT_INFINITY;
  TakeGroup(s, x);
}

void WalkRowBlocks(inout State s, uint base, uint begin, uint end, uint step) {
  uint item = begin;
  [loop] while (item < end && end - item > (ROW_BLOCK - 1) * step) {
    TakeRowBlock(s, base, item, end, step, true);
    item += ROW_BLOCK * step;
  }
  if (item < end) TakeRowBlock(s, base, item, end, step, false);
}

State WalkRow(uint base, uint begin, uint end, uint step) {
#if TAKES_ALL_ITEMS
  State walked = Identity();
  TakeRowBlock(walked, base, 0, ITEMS, 1, true);
  return walked;
#else
  State total = Identity();
  uint item = begin;
  [loop] while (item < end) {
    State chain = Identity();
    uint count = CHAIN_BLOCKS * ROW_BLOCK * step;
    WalkRowBlocks(chain, base, item, StopAfter(item, count, end), step);
    Combine(total, chain);
    item += count;
  }
  return total;
#endif
}

#else

// `join` of all slots of `x`. A tree, since vkd3d's compiler takes exponential time for a chain of 16;
// spelled out, since it miscompiles an unrolled loop whose passes depend on each other through an
// array (tests/conformance holds the case).
#define JOIN_TWO(join, x, i) join(x[i], x[i + 1])
#define JOIN_FOUR(join, x, i) join(JOIN_TWO(join, x, i), JOIN_TWO(join, x, i + 2))
#define JOIN_EIGHT(join, x, i) join(JOIN_FOUR(join, x, i), JOIN_FOUR(join, x, i + 4))
#if SLOTS == 16
#define JOIN_SLOTS(join, x) join(JOIN_EIGHT(join, x, 0), JOIN_EIGHT(join, x, 8))
#elif SLOTS == 8
#define JOIN_SLOTS(join, x) JOIN_EIGHT(join, x, 0)
#elif SLOTS == 4
#define JOIN_SLOTS(join, x) JOIN_FOUR(join, x, 0)
#elif SLOTS == 2
#define JOIN_SLOTS(join, x) JOIN_TWO(join, x, 0)
#else
#define JOIN_SLOTS(join, x) x[0]
#endif

// An item may have no element of its run. Then it must not be taken: its key could pass for that of
// an element, and nothing would be found there.
bool HasElements(uint first) {
#if LOAD == LOAD_SHIFTED && TRACKS_POSITION
  return first + (SLOTS - 1) < c.run_length + (SLOTS - 1);
#else
  return true;
#endif
}

void TakeRowBlock(inout State s, uint base, uint item, uint step) {
  BITS x[SLOTS][ROW_BLOCK];
  bool has_elements = false;
  [unroll] for (uint b = 0; b < ROW_BLOCK; ++b) {
    uint at;
    uint4 v = LoadRowItem(base, item + b * step, at);
    BITS elements[SLOTS];
    ItemElements(v, at, elements);
    has_elements = has_elements || HasElements(at);
    [unroll] for (uint i = 0; i < SLOTS; ++i) {
      x[i][b] = elements[i];
#if LOAD == LOAD_SHIFTED
      if (!InRun(at, i)) x[i][b] = EMPTY_ELEMENT;
#endif
    }
  }
  Part parts[SLOTS];
  [unroll] for (uint slot = 0; slot < SLOTS; ++slot) {
    parts[slot] = Join(PartOf(x[slot][0]), PartOf(x[slot][1]));
  }
  if (has_elements) Take(s, JOIN_SLOTS(Join, parts), item);
}

// Of the vector of an item, whose slot 0 stands at `at` of its run.
Part PartOfItem(uint4 v, uint at) {
  BITS elements[SLOTS];
  ItemElements(v, at, elements);
  Part parts[SLOTS];
  [unroll] for (uint i = 0; i < SLOTS; ++i) {
#if LOAD == LOAD_SHIFTED
    if (!InRun(at, i)) elements[i] = EMPTY_ELEMENT;
#endif
    parts[i] = PartOf(elements[i]);
  }
  return JOIN_SLOTS(Join, parts);
}

void TakeRowItem(inout State s, uint base, uint item) {
  uint at;
  uint4 v = LoadRowItem(base, item, at);
  Part part = PartOfItem(v, at);
  if (HasElements(at)) Take(s, part, item);
}

#if TRACKS_POSITION
uint RowPosition(uint base, uint item, uint at, uint slot) {
#if LOAD == LOAD_SCALAR
  return c.index_base + item;
#else
  return c.index_base + FindRowItem(base, item).run * c.run_length + at + slot;
#endif
}

// Where the best element stands in an item, or NOWHERE.
uint FindInItem(State s, uint base, uint item, uint4 v, uint at) {
  BITS elements[SLOTS];
#if LOAD == LOAD_SCALAR
  elements[0] = ElementOf(v, at % VECTOR_ELEMENTS);
#else
  UnpackVector(v, elements);
#endif
  uint found[SLOTS];
  [unroll] for (uint i = 0; i < SLOTS; ++i) {
    uint position = Ordered(RowPosition(base, item, at, i));
    found[i] = NOWHERE;
    Look(found[i], s, elements[i], InRun(at, i) ? position : NOWHERE);
  }
  return JOIN_SLOTS(min, found);
}

void SettleRow(inout State s, uint base, uint end, uint step) {
  uint found = NOWHERE;
  if (s.item != NOWHERE) {
    [loop] for (uint b = 0; b < ROW_BLOCK; ++b) {
      if (end - s.item <= b * step) break;
      uint item = s.item + b * step;
      uint at;
      uint4 v = LoadRowItem(base, item, at);
      found = min(found, FindInItem(s, base, item, v, at));
    }
  }
  s.item = found;
}
#endif

#if ITEMS

#if ITEMS == 8
#define JOIN_ITEMS(join, x) JOIN_EIGHT(join, x, 0)
#elif ITEMS == 7
#define JOIN_ITEMS(join, x) join(JOIN_FOUR(join, x, 0), join(JOIN_TWO(join, x, 4), x[6]))
#elif ITEMS == 6
#define JOIN_ITEMS(join, x) join(JOIN_FOUR(join, x, 0), JOIN_TWO(join, x, 4))
#elif ITEMS == 5
#define JOIN_ITEMS(join, x) join(JOIN_FOUR(join, x, 0), x[4])
#elif ITEMS == 4
#define JOIN_ITEMS(join, x) JOIN_FOUR(join, x, 0)
#elif ITEMS == 3
#define JOIN_ITEMS(join, x) join(JOIN_TWO(join, x, 0), x[2])
#elif ITEMS == 2
#define JOIN_ITEMS(join, x) JOIN_TWO(join, x, 0)
#else
#define JOIN_ITEMS(join, x) x[0]
#endif

// All items' vectors stay at hand, and positions are found in them.
State WalkRow(uint base, uint begin, uint end, uint step) {
  uint4 v[ITEMS];
  uint at[ITEMS];
  Part parts[ITEMS];
  uint i;
  [unroll] for (i = 0; i < ITEMS; ++i) v[i] = LoadRowItem(base, i, at[i]);
  [unroll] for (i = 0; i < ITEMS; ++i) parts[i] = PartOfItem(v[i], at[i]);
  State walked = Identity();
  Take(walked, JOIN_ITEMS(Join, parts), 0);
#if TRACKS_POSITION
  uint found[ITEMS];
  [unroll] for (i = 0; i < ITEMS; ++i) found[i] = FindInItem(walked, base, i, v[i], at[i]);
  walked.item = JOIN_ITEMS(min, found);
#endif
  return walked;
}

#else

// Chains of sums begin and end within the one loop: a loop in a loop took a tenth to a quarter
// longer on a software device (docs/notes/kernels-on-lavapipe.md).
State WalkRow(uint base, uint begin, uint end, uint step) {
  State walked = Identity();
  uint item = begin;
#if CASCADE
  State total = Identity();
  uint count = CHAIN_BLOCKS * ROW_BLOCK * step;
  uint stop = StopAfter(begin, count, end);
#endif
  [loop] while (item < end && end - item > (ROW_BLOCK - 1) * step) {
    TakeRowBlock(walked, base, item, step);
    item += ROW_BLOCK * step;
#if CASCADE
    if (item >= stop) {
      Combine(total, walked);
      walked = Identity();
      stop = StopAfter(item, count, end);
    }
#endif
  }
  [loop] for (; item < end; item += step) TakeRowItem(walked, base, item);
#if CASCADE
  Combine(total, walked);
  walked = total;
#endif
#if TRACKS_POSITION
  SettleRow(walked, base, end, step);
#endif
  return walked;
}

#endif  // ITEMS

#endif  // FOLDS_GROUPS

#endif  // LOAD == LOAD_RECORD
