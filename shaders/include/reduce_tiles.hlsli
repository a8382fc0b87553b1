// Of reduction.hlsli: the walk over columns in tiles. A lane takes several vectors of a few rows, then
// of the next few, so that memory is read in long runs of few rows at a time, which is what processors
// fetch ahead of (docs/notes/kernels-on-lavapipe.md). There are one or two loads in the source, and
// their loop keeps parts in registers; states wait in arrays meanwhile.

#define IS_NARROW (WIDTH == 4 && SETS > 1)

#include "include/reduce_tile_states.hlsli"

// Where a lane's vectors are: the first one's unit, and where item 0 starts; the first item it walks.
struct TileColumns {
  uint first;
  uint count;
  uint base;
  uint begin;
};

// Lanes beyond the last unit walk it as well, and store nothing.
uint TileBase(TileColumns columns, uint t) {
  uint unit = min(columns.first + t * THREADS, c.column_units - 1);
  return columns.base + unit * SLOTS * c.column_input_stride;
}

// Rows [begin, end) of every vector.

#if FOLDS_GROUPS

void TakeTileRows(TileColumns columns, uint begin, uint end) {
  [loop] for (uint t = 0; t < columns.count; ++t) {
    uint base = TileBase(columns, t);
    States states;
#define READ(i) states.s##i = WaitingState(t * SETS + i);
    EACH_SET(READ)
    WalkColumnRows(states, base, begin, end, 1, true);
#define WRITE(i) LetStateWait(t * SETS + i, states.s##i);
    EACH_SET(WRITE)
  }
}

#else

void TakeTileRows(TileColumns columns, uint begin, uint end) {
  [loop] for (uint t = 0; t < columns.count; ++t) {
    uint base = TileBase(columns, t);
    Parts parts = WaitingParts(t);
    uint at = base + ItemOffset(begin);
#if DIMS < 2
    uint stride = ItemOffset(1);
#define NEXT_ROW at + stride
#define STEP(count) at += (count) * stride;
#else
#define NEXT_ROW base + ItemOffset(item + 1)
#define STEP(count) at = base + ItemOffset(item);
#endif
#define PART_OF(vector, i, row) PartOfRow(SetElements(vector, at, i), row)
    uint item = begin;
#if IS_NARROW
    // Two rows a round, both loaded before any arithmetic: a call of the driver's loads spills all
    // registers, and parts take many.
    [loop] while (item + 1 < end) {
      uint4 v = LoadVector(at);
      uint4 next = LoadVector(NEXT_ROW);
#define JOIN_TWO(i) \
  parts.p##i =      \
      JoinTile(parts.p##i, JoinTile(PART_OF(v, i, row), PART_OF(next, i, row + 1)));
      uint row = item - columns.begin;
      EACH_SET(JOIN_TWO)
      item += 2;
      STEP(2)
    }
#endif
    [loop] while (item < end) {
      uint4 v = LoadVector(at);
#define JOIN_ONE(i) parts.p##i = JoinTile(parts.p##i, PART_OF(v, i, item - columns.begin));
      EACH_SET(JOIN_ONE)
      ++item;
      STEP(1)
    }
    LetPartsWait(t, parts, begin);
  }
}

#endif

void WalkTile(TileColumns columns, uint end) {
  ClearPlaces(TOTALS, columns.count);
#if CASCADE
  [loop] for (uint chain = columns.begin; chain < end; chain += TILE_CHAIN) {
    uint stop = StopAfter(chain, TILE_CHAIN, end);
    ClearPlaces(0, columns.count);
#else
    uint chain = columns.begin;
    uint stop = end;
#endif
    [loop] for (uint item = chain; item < stop; item += c.tile_rows) {
      TakeTileRows(columns, item, StopAfter(item, c.tile_rows, stop));
    }
#if CASCADE
    [loop] for (uint i = 0; i < columns.count * SETS; ++i) {
      State total = WaitingState(TOTALS + i);
      Combine(total, WaitingState(i));
      LetStateWait(TOTALS + i, total);
    }
  }
#endif
}
