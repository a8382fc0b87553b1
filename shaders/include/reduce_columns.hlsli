// Of reduction.hlsli: the walk over columns. Every slot of an item belongs to a result of its own.

#define SETS (SLOTS / WIDTH)
#include "include/each_set.hlsli"

// The states of a lane, WIDTH slots each.
struct States {
#define MEMBER(i) State s##i;
  EACH_SET(MEMBER)
};

States NoStates() {
  States states;
#define BEGIN(i) states.s##i = Identity();
  EACH_SET(BEGIN)
  return states;
}

// The vector that starts at any element.
uint4 LoadShifted(uint element) {
  uint index = element / VECTOR_ELEMENTS;
  uint4 a = Input[index];
  uint4 b = Input[min(index + 1, instance.read0 + c.last_vector)];
  uint bit = (element % VECTOR_ELEMENTS) * ELEMENT_BITS;
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

uint4 LoadVector(uint at) {
#if LOAD == LOAD_SHIFTED
  return LoadShifted(at);
#else
  return Input[at / VECTOR_ELEMENTS];
#endif
}

uint4 LoadColumnItem(uint base, uint item, out uint at) {
  at = base + ItemOffset(item);
  return LoadVector(at);
}

// The elements of one set of an item, as PartOf wants them: one of each word of the vector.
BITS SetElements(uint4 v, uint at, uint set) {
#if LOAD == LOAD_SCALAR
#if HIGH_ELEMENTS
  return ElementOf(v, at % VECTOR_ELEMENTS) << ELEMENT_SHIFT;
#else
  return ElementOf(v, at % VECTOR_ELEMENTS);
#endif
#elif IS_WIDE
  return uint2(v[2 * set], v[2 * set + 1]);
#elif HIGH_ELEMENTS
  return v << (ELEMENT_SHIFT - set * ELEMENT_BITS);
#else
  return (v >> (set * ELEMENT_BITS)) & ELEMENT_MASK;
#endif
}

// The slot that component `i` of a set stands for.
uint SlotOf(uint set, uint i) { return i * SETS + set; }

// Items that a step of the walk reads at once, two loads each where they are shifted. Twice as many
// cost compilers more than twice the time.
#if LOAD == LOAD_SHIFTED && !FOLDS_GROUPS
#define ROWS 2
#else
#define ROWS 4
#endif

struct ColumnRows {
  uint4 v[ROWS];
  uint at[ROWS];
};

// `count` rows from an item on.
ColumnRows LoadColumnRows(uint base, uint item, uint step, uint count) {
  ColumnRows rows = (ColumnRows)0;
  [unroll] for (uint row = 0; row < count; ++row) {
    rows.v[row] = LoadColumnItem(base, item + row * step, rows.at[row]);
  }
  return rows;
}

#define ELEMENTS(set, row) SetElements(rows.v[row], rows.at[row], set)

#if FOLDS_GROUPS

void TakeRows(inout States states, uint base, uint item, uint step) {
  ColumnRows rows = LoadColumnRows(base, item, step, ROWS);
#define NUMBERS(i, row) FloatOf(ELEMENTS(i, row))
#define TAKE_ROWS(i) \
  TakeFour(states.s##i, NUMBERS(i, 0), NUMBERS(i, 1), NUMBERS(i, 2), NUMBERS(i, 3));
  EACH_SET(TAKE_ROWS)
}

void TakeRow(inout States states, uint base, uint item) {
  ColumnRows rows = LoadColumnRows(base, item, 0, 1);
#define TAKE_ROW(i) TakeOne(states.s##i, NUMBERS(i, 0));
  EACH_SET(TAKE_ROW)
}

#else

#define PART(i, row) PartOf(ELEMENTS(i, row))
#define TWO_PARTS(i, row) Join(PART(i, row), PART(i, row + 1))

void TakeRows(inout States states, uint base, uint item, uint step) {
  ColumnRows rows = LoadColumnRows(base, item, step, ROWS);
#if ROWS == 4
#define TAKE_ROWS(i) Take(states.s##i, Join(TWO_PARTS(i, 0), TWO_PARTS(i, 2)), item);
#else
#define TAKE_ROWS(i) Take(states.s##i, TWO_PARTS(i, 0), item);
#endif
  EACH_SET(TAKE_ROWS)
}

void TakeRow(inout States states, uint base, uint item) {
  ColumnRows rows = LoadColumnRows(base, item, 0, 1);
#define TAKE_ROW(i) Take(states.s##i, PART(i, 0), item);
  EACH_SET(TAKE_ROW)
}

#endif

// Without `blocks` every item is taken for itself.
void WalkColumnRows(inout States states, uint base, uint begin, uint end, uint step, bool blocks) {
  uint item = begin;
  [loop] while (blocks && item < end && end - item > (ROWS - 1) * step) {
    TakeRows(states, base, item, step);
    item += ROWS * step;
  }
  [loop] for (; item < end; item += step) TakeRow(states, base, item);
}

#if TRACKS_POSITION
// Walks up to this long know the item of each state, and need no search, which costs as much.
#define SHORT_COLUMN 64
#if ITEMS
#define SEARCHES_BLOCKS false
#else
#define SEARCHES_BLOCKS (c.split_items > SHORT_COLUMN * LANES)
#endif

// The second look, at the blocks of `rows` items whose keys were best in the walks of a set.
void SettleColumns(inout State s, uint base, uint set, uint rows, uint end, uint step) {
  UINTS found = (UINTS)NOWHERE;
#if WIDTH == 1
  [unroll]
#else
  [loop]
#endif
  for (uint i = 0; i < WIDTH; ++i) {
    uint first = ComponentOf(s.item, i);
    [loop] for (uint b = 0; b < rows; ++b) {
      bool inside = first != NOWHERE && end - first > b * step;
      uint item = inside ? first + b * step : end - 1;
      uint at = base + ItemOffset(item) + SlotOf(set, i);
      uint4 v = Input[min(at / VECTOR_ELEMENTS, instance.read0 + c.last_vector)];
      UINTS position = Ordered((UINTS)(c.index_base + item));
      position = inside && COMPONENTS == i ? position : (UINTS)NOWHERE;
      Look(found, s, (BITS)ElementOf(v, at % VECTOR_ELEMENTS), position);
    }
  }
  s.item = found;
}
#endif

States WalkColumns(uint base, uint begin, uint end, uint step) {
  States states = NoStates();
#if ITEMS == ROWS && !TRACKS_POSITION
  TakeRows(states, base, 0, 1);
#elif ITEMS
  [unroll] for (uint item = 0; item < ITEMS; ++item) TakeRow(states, base, item);
#elif CASCADE
  uint item = begin;
  [loop] while (item < end) {
    States chains = NoStates();
    uint count = COLUMN_CHAIN * step;
    WalkColumnRows(chains, base, item, StopAfter(item, count, end), step, true);
#define COMBINE(i) Combine(states.s##i, chains.s##i);
    EACH_SET(COMBINE)
    item += count;
  }
#elif TRACKS_POSITION
  WalkColumnRows(states, base, begin, end, step, SEARCHES_BLOCKS);
#else
  WalkColumnRows(states, base, begin, end, step, true);
#endif
  return states;
}
