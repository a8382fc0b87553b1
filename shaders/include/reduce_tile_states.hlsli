// Of reduce_tiles.hlsli: states that wait while a lane walks other vectors of its tile. A software
// driver reaches the places of an array lane by lane and word by word, at the cost of some loads: so
// narrow elements wait packed, and every word has an array of its own, for which places are found
// once (docs/performance.md).
#ifndef OPMILL_REDUCE_TILE_STATES_HLSLI_
#define OPMILL_REDUCE_TILE_STATES_HLSLI_

// 1: all sets of a vector wait in one, as the elements that their parts are. 0: each by its words.
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

#define WORD_ARRAYS(name)                \
  static uint name##_x[TOTALS + PLACES]; \
  static uint name##_y[TOTALS + PLACES]; \
  static uint name##_z[TOTALS + PLACES]; \
  static uint name##_w[TOTALS + PLACES];
#define READ_WORDS(name, i) uint4(name##_x[i], name##_y[i], name##_z[i], name##_w[i])
#define WRITE_WORDS(name, i, words) \
  name##_x[i] = words.x;            \
  name##_y[i] = words.y;            \
  name##_z[i] = words.z;            \
  name##_w[i] = words.w;

WORD_ARRAYS(waiting)

#if WAITS_PACKED

Part PartOfPacked(uint4 packed, uint set) { return PartOf(SetElements(packed, 0, set)); }
uint4 PackedPart(Part p, uint set) { return BitsOfPart(p) << (set * ELEMENT_BITS); }

uint4 WaitingVector(uint t) { return READ_WORDS(waiting, t); }
void LetVectorWait(uint t, uint4 packed) { WRITE_WORDS(waiting, t, packed) }

void ClearPlaces(uint from, uint vectors) {
  uint4 none = (uint4)0;
  [unroll] for (uint set = 0; set < SETS; ++set) {
    none |= (uint4)((EMPTY_ELEMENT >> ELEMENT_SHIFT) << (set * ELEMENT_BITS));
  }
  [loop] for (uint t = 0; t < vectors; ++t) LetVectorWait(from + t, none);
}

// What a set of the tile's vector `t` has come to.
State TileState(uint t, uint set) {
  State state;
  state.part = PartOfPacked(WaitingVector(t), set);
  return state;
}

#else

#if WIDTH == 4 && STATE_WORDS == 2
WORD_ARRAYS(waiting_second)
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

State TileState(uint t, uint set) { return WaitingState(TOTALS + t * SETS + set); }

#endif

#endif  // OPMILL_REDUCE_TILE_STATES_HLSLI_
