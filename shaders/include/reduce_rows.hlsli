// Of reduction.hlsli: the walk over rows. All slots of an item belong to one result.
#ifndef OPMILL_REDUCE_ROWS_HLSLI_
#define OPMILL_REDUCE_ROWS_HLSLI_

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
}

#else

// One part of all slots. A tree, since vkd3d's compiler takes exponential time for a chain of 16;
// spelled out, since it miscompiles an unrolled loop whose passes depend on each other through an
// array (tests/conformance holds the case).
Part JoinSlots(Part p[SLOTS]) {
#if SLOTS == 16
  Part a = Join(Join(Join(p[0], p[1]), Join(p[2], p[3])), Join(Join(p[4], p[5]), Join(p[6], p[7])));
  Part b = Join(Join(Join(p[8], p[9]), Join(p[10], p[11])),
                Join(Join(p[12], p[13]), Join(p[14], p[15])));
  return Join(a, b);
#elif SLOTS == 8
  return Join(Join(Join(p[0], p[1]), Join(p[2], p[3])), Join(Join(p[4], p[5]), Join(p[6], p[7])));
#elif SLOTS == 4
  return Join(Join(p[0], p[1]), Join(p[2], p[3]));
#elif SLOTS == 2
  return Join(p[0], p[1]);
#else
  return p[0];
#endif
}

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
  if (has_elements) Take(s, JoinSlots(parts), item);
}

void TakeRowItem(inout State s, uint base, uint item) {
  uint at;
  uint4 v = LoadRowItem(base, item, at);
  BITS elements[SLOTS];
  ItemElements(v, at, elements);
  Part parts[SLOTS];
  [unroll] for (uint i = 0; i < SLOTS; ++i) {
#if LOAD == LOAD_SHIFTED
    if (!InRun(at, i)) elements[i] = EMPTY_ELEMENT;
#endif
    parts[i] = PartOf(elements[i]);
  }
  if (HasElements(at)) Take(s, JoinSlots(parts), item);
}

#if TRACKS_POSITION
uint RowPosition(uint base, uint item, uint at, uint slot) {
#if LOAD == LOAD_SCALAR
  return c.index_base + item;
#else
  return c.index_base + FindRowItem(base, item).run * c.run_length + at + slot;
#endif
}

void SettleRow(inout State s, uint base, uint end, uint step) {
  uint found = NOWHERE;
  if (s.item != NOWHERE) {
    [loop] for (uint b = 0; b < ROW_BLOCK; ++b) {
      if (end - s.item <= b * step) break;
      uint item = s.item + b * step;
      uint at;
      uint4 v = LoadRowItem(base, item, at);
      BITS elements[SLOTS];
#if LOAD == LOAD_SCALAR
      elements[0] = ElementOf(v, at % VECTOR_ELEMENTS);
#else
      UnpackVector(v, elements);
#endif
      [unroll] for (uint i = 0; i < SLOTS; ++i) {
        uint position = Ordered(RowPosition(base, item, at, i));
        Look(found, s, elements[i], InRun(at, i) ? position : NOWHERE);
      }
    }
  }
  s.item = found;
}
#endif

// Chains of sums begin and end within the one loop: a loop in a loop took a tenth to a quarter
// longer on a software device (docs/performance.md).
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

#endif  // FOLDS_GROUPS

#endif  // LOAD == LOAD_RECORD

#endif  // OPMILL_REDUCE_ROWS_HLSLI_
