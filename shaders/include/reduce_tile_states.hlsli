// Of reduce_tiles.hlsli: what waits while a lane walks other vectors of its tile, states, or parts where
// these are all of a state; of narrow elements packed, or in one word with their rows.
#include "include/waiting_words.hlsli"

// 1: all sets of a vector wait in one, as the elements that their parts are. 0: each by words of its own.
#define WAITS_PACKED (PARTS_ARE_ELEMENTS && IS_NARROW)

#if WAITS_PACKED
#define PLACES TILE_VECTORS
#else
#define PLACES (TILE_VECTORS * SETS)
#endif
// Totals of the chains before the one that is walked stand behind them.
#if CASCADE
#define TOTALS PLACES
#else
#define TOTALS 0
#endif

WORD_ARRAYS(waiting, TOTALS + PLACES)

#if !FOLDS_GROUPS
#if PARTS_HAVE_ROWS
#define TILE_PART RowPart
#define JoinTile JoinRows
#define PartOfRow(elements, row) RowPartOf(elements, RowCode(row))
#else
#define TILE_PART Part
#define JoinTile Join
#define PartOfRow(elements, row) PartOf(elements)
#endif

// Of a vector of the tile.
struct Parts {
#define PART_MEMBER(i) TILE_PART p##i;
  EACH_SET(PART_MEMBER)
};
#endif

#if WAITS_PACKED

Part PartOfPacked(uint4 packed, uint set) { return PartOf(SetElements(packed, 0, set)); }

Parts WaitingParts(uint t) {
  uint4 packed = READ_WORDS(waiting, t);
  Parts parts;
#define UNPACK(i) parts.p##i = PartOfPacked(packed, i);
  EACH_SET(UNPACK)
  return parts;
}

void LetPartsWait(uint t, Parts parts, uint item) {
  uint4 packed = (uint4)0;
#define PACK(i) packed |= BitsOfPart(parts.p##i) << (i * ELEMENT_BITS);
  EACH_SET(PACK)
  WRITE_WORDS(waiting, t, packed)
}

void ClearPlaces(uint from, uint vectors) {
  uint4 none = (uint4)0;
  [unroll] for (uint set = 0; set < SETS; ++set) {
    none |= (uint4)((EMPTY_ELEMENT >> ELEMENT_SHIFT) << (set * ELEMENT_BITS));
  }
  [loop] for (uint t = 0; t < vectors; ++t) {
    WRITE_WORDS(waiting, from + t, none)
  }
}

// What a set of the tile's vector `t` has come to, from row `begin` on.
State TileState(uint t, uint set, uint begin) {
  State state;
  state.part = PartOfPacked(READ_WORDS(waiting, t), set);
  return state;
}

#elif PARTS_HAVE_ROWS

Parts WaitingParts(uint t) {
  Parts parts;
#define READ_PART(i) parts.p##i.code = (ORDERED)READ_WORDS(waiting, t * SETS + i);
  EACH_SET(READ_PART)
  return parts;
}

void LetPartsWait(uint t, Parts parts, uint item) {
#define WRITE_PART(i) WRITE_WORDS(waiting, t * SETS + i, (uint4)parts.p##i.code)
  EACH_SET(WRITE_PART)
}

void ClearPlaces(uint from, uint vectors) {
  uint4 none = (uint4)EmptyRowPart().code;
  [loop] for (uint i = 0; i < vectors * SETS; ++i) {
    WRITE_WORDS(waiting, from + i, none)
  }
}

State TileState(uint t, uint set, uint begin) {
  RowPart part;
  part.code = (ORDERED)READ_WORDS(waiting, t * SETS + set);
  return StateOfRowPart(part, begin);
}

#else

#if WIDTH == 4 && STATE_WORDS == 2
WORD_ARRAYS(waiting_second, TOTALS + PLACES)
#endif

State WaitingState(uint i) {
  Words words;
  words.first = READ_WORDS(waiting, i);
#if WIDTH == 4 && STATE_WORDS == 2
  words.second = READ_WORDS(waiting_second, i);
#endif
  return StateOfWords(words);
}

void LetStateWait(uint i, State state) {
  Words words = WordsOf(state);
  WRITE_WORDS(waiting, i, words.first)
#if WIDTH == 4 && STATE_WORDS == 2
  WRITE_WORDS(waiting_second, i, words.second)
#endif
}

void ClearPlaces(uint from, uint vectors) {
  [loop] for (uint i = 0; i < vectors * SETS; ++i) LetStateWait(from + i, Identity());
}

State TileState(uint t, uint set, uint begin) { return WaitingState(TOTALS + t * SETS + set); }

#if !FOLDS_GROUPS
Parts WaitingParts(uint t) {
  Parts parts;
#define BEGIN_PART(i) parts.p##i = EmptyPart();
  EACH_SET(BEGIN_PART)
  return parts;
}

// The parts of a block that starts with this item.
void LetPartsWait(uint t, Parts parts, uint item) {
#define TAKE_PART(i)                          \
  {                                           \
    State state = WaitingState(t * SETS + i); \
    Take(state, parts.p##i, item);            \
    LetStateWait(t * SETS + i, state);        \
  }
  EACH_SET(TAKE_PART)
}
#endif

#endif
