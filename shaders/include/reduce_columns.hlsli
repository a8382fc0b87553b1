// Of reduction.hlsli: the walk over columns. Every slot of an item belongs to a result of its own.
#ifndef OPMILL_REDUCE_COLUMNS_HLSLI_
#define OPMILL_REDUCE_COLUMNS_HLSLI_

#define TILE_SLOTS (TILE * SLOTS)

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

uint4 LoadColumnItem(uint base, uint item, out uint at) {
  at = base + ItemOffset(item);
#if LOAD == LOAD_SHIFTED
  return LoadShifted(at);
#else
  return Input[at / VECTOR_ELEMENTS];
#endif
}

#if FOLDS_GROUPS

void TakeColumnBlock(inout State states[TILE_SLOTS], uint bases[TILE], uint item, uint end,
                     uint step, bool whole) {
  [unroll] for (uint t = 0; t < TILE; ++t) {
    float x[SLOTS][GROUP];
    [unroll] for (uint b = 0; b < COLUMN_BLOCK; ++b) {
      bool inside = whole || end - item > b * step;
      uint at;
      uint4 v = LoadColumnItem(bases[t], inside ? item + b * step : item, at);
      BITS elements[SLOTS];
      ItemElements(v, at, elements);
      [unroll] for (uint i = 0; i < SLOTS; ++i) {
        x[i][b] = inside ? FloatOf(elements[i]) : -FLOAT_INFINITY;
      }
    }
    [unroll] for (uint slot = 0; slot < SLOTS; ++slot) TakeGroup(states[t * SLOTS + slot], x[slot]);
  }
}

void WalkColumns(inout State states[TILE_SLOTS], uint bases[TILE], uint begin, uint end,
                 uint step) {
  uint item = begin;
  [loop] while (item < end && end - item > (COLUMN_BLOCK - 1) * step) {
    TakeColumnBlock(states, bases, item, end, step, true);
    item += COLUMN_BLOCK * step;
  }
  if (item < end) TakeColumnBlock(states, bases, item, end, step, false);
}

#else

Part JoinBlock(BITS x[COLUMN_BLOCK]) {
  return Join(Join(Join(PartOf(x[0]), PartOf(x[1])), Join(PartOf(x[2]), PartOf(x[3]))),
              Join(Join(PartOf(x[4]), PartOf(x[5])), Join(PartOf(x[6]), PartOf(x[7]))));
}

// Without `blocks` every item is taken for itself.
void WalkColumnBlocks(inout State states[TILE_SLOTS], uint bases[TILE], uint begin, uint end,
                      uint step, bool blocks) {
  uint item = begin;
  [loop] while (blocks && item < end && end - item > (COLUMN_BLOCK - 1) * step) {
    [unroll] for (uint t = 0; t < TILE; ++t) {
      BITS x[SLOTS][COLUMN_BLOCK];
      [unroll] for (uint b = 0; b < COLUMN_BLOCK; ++b) {
        uint at;
        uint4 v = LoadColumnItem(bases[t], item + b * step, at);
        BITS elements[SLOTS];
        ItemElements(v, at, elements);
        [unroll] for (uint i = 0; i < SLOTS; ++i) x[i][b] = elements[i];
      }
      [unroll] for (uint slot = 0; slot < SLOTS; ++slot) {
        Take(states[t * SLOTS + slot], JoinBlock(x[slot]), item);
      }
    }
    item += COLUMN_BLOCK * step;
  }
  [loop] for (; item < end; item += step) {
    [unroll] for (uint t = 0; t < TILE; ++t) {
      uint at;
      uint4 v = LoadColumnItem(bases[t], item, at);
      BITS elements[SLOTS];
      ItemElements(v, at, elements);
      [unroll] for (uint i = 0; i < SLOTS; ++i) {
        Take(states[t * SLOTS + i], PartOf(elements[i]), item);
      }
    }
  }
}

#if TRACKS_POSITION
// Walks up to this long know the item of each state, and need no search, which costs as much.
#define SHORT_COLUMN (8 * COLUMN_BLOCK)

void OrderItems(inout State states[TILE_SLOTS]) {
  [unroll] for (uint i = 0; i < TILE_SLOTS; ++i) {
    if (states[i].item != NOWHERE) states[i].item = Ordered(c.index_base + states[i].item);
  }
}

void SearchBlocks(inout State states[TILE_SLOTS], uint bases[TILE], uint end, uint step) {
  uint found[TILE_SLOTS];
  [unroll] for (uint k = 0; k < TILE_SLOTS; ++k) found[k] = NOWHERE;
  [loop] for (uint b = 0; b < COLUMN_BLOCK; ++b) {
    [unroll] for (uint i = 0; i < TILE_SLOTS; ++i) {
      uint first = states[i].item;
      bool valid = first != NOWHERE && end - first > b * step;
      uint item = min(first + b * step, end - 1);
      uint at = bases[i / SLOTS] + ItemOffset(item) + i % SLOTS;
      uint4 v = Input[min(at / VECTOR_ELEMENTS, instance.read0 + c.last_vector)];
      Look(found[i], states[i], ElementOf(v, at % VECTOR_ELEMENTS), c.index_base + item, valid);
    }
  }
  [unroll] for (uint j = 0; j < TILE_SLOTS; ++j) states[j].item = found[j];
}
#endif

void WalkColumns(inout State states[TILE_SLOTS], uint bases[TILE], uint begin, uint end,
                 uint step) {
#if CASCADE
  uint item = begin;
  [loop] while (item < end) {
    State chains[TILE_SLOTS];
    [unroll] for (uint i = 0; i < TILE_SLOTS; ++i) chains[i] = Identity();
    uint count = CHAIN_BLOCKS * COLUMN_BLOCK * step;
    WalkColumnBlocks(chains, bases, item, StopAfter(item, count, end), step, true);
    [unroll] for (uint j = 0; j < TILE_SLOTS; ++j) Combine(states[j], chains[j]);
    item += count;
  }
#elif TRACKS_POSITION
  bool blocks = c.split_items > SHORT_COLUMN * step;
  WalkColumnBlocks(states, bases, begin, end, step, blocks);
  [branch] if (blocks) {
    SearchBlocks(states, bases, end, step);
  } else {
    OrderItems(states);
  }
#else
  WalkColumnBlocks(states, bases, begin, end, step, true);
#endif
}

#endif  // FOLDS_GROUPS

#endif  // OPMILL_REDUCE_COLUMNS_HLSLI_
