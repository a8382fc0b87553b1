// Of reduction.hlsli: the walk over columns in tiles. A lane takes several vectors of a few rows, then
// of the next few, so that memory is read in long runs of few rows at a time, which is what processors
// fetch ahead of (docs/performance.md). There is one load in the source, and its loop keeps parts in
// registers; states wait in an array meanwhile.
#ifndef OPMILL_REDUCE_TILES_HLSLI_
#define OPMILL_REDUCE_TILES_HLSLI_

#define TILE_VECTORS 32  // of a lane at most; kMaxTileVectors in tuning.h
#define TILE_ROWS 16

static Words tile[TILE_VECTORS * SETS];
#if CASCADE
static Words tile_chains[TILE_VECTORS * SETS];
#define WALKED tile_chains
#else
#define WALKED tile
#endif

// Where a lane's vectors are, the first one's unit and the rows' start.
struct TileColumns {
  uint first;
  uint count;
  uint base;
};

// Lanes beyond the last unit walk it as well, and store nothing.
uint TileBase(TileColumns columns, uint t) {
  uint unit = min(columns.first + t * THREADS, c.column_units - 1);
  return columns.base + unit * SLOTS * c.column_input_stride;
}

#if FOLDS_GROUPS

void TakeTileRows(TileColumns columns, uint begin, uint end) {
  [loop] for (uint t = 0; t < columns.count; ++t) {
    uint base = TileBase(columns, t);
    States states;
#define READ(i) states.s##i = StateOfWords(WALKED[t * SETS + i]);
    EACH_SET(READ)
    WalkColumnRows(states, base, begin, end, 1, true);
#define WRITE(i) WALKED[t * SETS + i] = WordsOf(states.s##i);
    EACH_SET(WRITE)
  }
}

#else

struct Parts {
#define PART_MEMBER(i) Part p##i;
  EACH_SET(PART_MEMBER)
};

void TakeTileRows(TileColumns columns, uint begin, uint end) {
  [loop] for (uint t = 0; t < columns.count; ++t) {
    uint base = TileBase(columns, t);
    Parts parts;
#define EMPTY(i) parts.p##i = EmptyPart();
    EACH_SET(EMPTY)
    uint at = base + ItemOffset(begin);
#if DIMS < 2
    uint stride = ItemOffset(1);
#endif
    [loop] for (uint item = begin; item < end; ++item) {
      uint4 v = LoadVector(at);
#define JOIN(i) parts.p##i = Join(parts.p##i, PartOf(SetElements(v, at, i)));
      EACH_SET(JOIN)
#if DIMS < 2
      at += stride;
#else
      at = base + ItemOffset(item + 1);
#endif
    }
#define TAKE(i)                                          \
  {                                                      \
    State state = StateOfWords(WALKED[t * SETS + i]);    \
    Take(state, parts.p##i, begin);                      \
    WALKED[t * SETS + i] = WordsOf(state);               \
  }
    EACH_SET(TAKE)
  }
}

#endif

void WalkTile(TileColumns columns, uint begin, uint end) {
  Words none = WordsOf(Identity());
  { [loop] for (uint i = 0; i < columns.count * SETS; ++i) tile[i] = none; }
#if CASCADE
  [loop] for (uint chain = begin; chain < end; chain += COLUMN_CHAIN) {
    uint stop = StopAfter(chain, COLUMN_CHAIN, end);
    { [loop] for (uint i = 0; i < columns.count * SETS; ++i) tile_chains[i] = none; }
#else
    uint chain = begin;
    uint stop = end;
#endif
    [loop] for (uint item = chain; item < stop; item += TILE_ROWS) {
      TakeTileRows(columns, item, StopAfter(item, TILE_ROWS, stop));
    }
#if CASCADE
    [loop] for (uint i = 0; i < columns.count * SETS; ++i) {
      State total = StateOfWords(tile[i]);
      Combine(total, StateOfWords(tile_chains[i]));
      tile[i] = WordsOf(total);
    }
  }
#endif
}

#endif  // OPMILL_REDUCE_TILES_HLSLI_
