// top_k by a cut (top_k_select.hlsl): the elements above it.
//   LAYOUT               how sequences lie in memory: LAYOUT_*
//   ALONE, STORES_WORDS  see top_k_selection.hlsli
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKCollectConstants
#include "include/kept_dims.hlsli"
#include "include/top_k_elements.hlsli"
#include "include/top_k_key.hlsli"
#include "include/top_k_selection.hlsli"

Buffer<uint4> Keys : register(t1);
#define BLOCK_KEYS Keys
#include "include/top_k_block_keys.hlsli"

// --- windows: neighbours that a lane tests first, a bit each, and then goes through the bits ---

// Elements of a block behind its sequence's start are numbered as items: those of rows start at the
// vector in which the sequence does.
#if IS_WIDE
#define SETS 1  // of words in a vector
#else
#define SETS WORD_SETS
#endif

// Items of a window.
#define WINDOW TOP_K_WINDOW(LAYOUT == LAYOUT_ROWS, IS_WIDE)

#if ALONE && LAYOUT == LAYOUT_COLUMNS
#define TAKES_SETS 1  // a lane's sequences are the columns of a set of words
#else
#define TAKES_SETS 0
#endif

Cut LoadCut(uint header) {
  Cut cut;
  cut.tail = Headers[header + TAIL_AT];
#if IS_WIDE
  cut.key = uint2(Headers[header + KEY_AT], Headers[header + KEY_AT + 1]);
#else
  cut.key = Headers[header + KEY_AT];
#endif
  return cut;
}

// Items before this one are wanted where they equal the cut: blocks up to the cut's own take what
// does, the earlier come first.
uint EqualsEnd(Cut cut) {
  uint last_equal = ~cut.tail;
  return last_equal < c.first_block
             ? 0
             : (min(last_equal - c.first_block, c.block_count - 1) + 1) * c.block_length;
}

bool Any(uint4 bits) { return (bits.x | bits.y | bits.z | bits.w) != 0; }

// The first word that has a bit, and the first of its bits.
uint2 FirstBitOf(uint4 bits) {
  uint low_word = bits.x != 0 ? 0 : 1;
  uint high_word = bits.z != 0 ? 2 : 3;
  uint low_bits = bits.x != 0 ? bits.x : bits.y;
  uint high_bits = bits.z != 0 ? bits.z : bits.w;
  uint word = low_bits != 0 ? low_word : high_word;
  return uint2(word, firstbitlow(low_bits != 0 ? low_bits : high_bits));
}

#if !TAKES_SETS

struct Sequence {
  uint start;       // of items
  uint before;      // items before the first element
  uint end;         // of items
  uint equals_end;  // items before this one are also wanted where they equal the cut
  Cut cut;
};

// Item `item` of a window as its place in four words of bits.
uint4 BitOf(uint item) {
#if LAYOUT == LAYOUT_ROWS
  uint element = item % VECTOR_ELEMENTS;
  uint bit = item / VECTOR_ELEMENTS * SETS + element % SETS;
  return (uint4)(uint4(0, 1, 2, 3) == (uint4)(element / SETS)) << bit;
#else
  return uint4(1u << item, 0, 0, 0);
#endif
}

// And back.
uint ItemOf(uint word, uint bit) {
#if LAYOUT == LAYOUT_ROWS
  return bit / SETS * VECTOR_ELEMENTS + word * SETS + bit % SETS;
#else
  return bit;
#endif
}

bool IsWanted(BITS key, uint item, Sequence s) {
  return KeyAbove(key, s.cut.key) || (KeyEqual(key, s.cut.key) && item < s.equals_end);
}

BITS LoadItem(Sequence s, uint item) {
#if LAYOUT == LAYOUT_ROWS
  uint at = s.start + item;
  return KeyOf(ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS));
#else
  return KeyOf(LoadElement(s.start, item));
#endif
}

// The bits of those items of the window from `first` on that are wanted.
uint4 Test(Sequence s, uint first) {
  uint4 wanted = (uint4)0;
#if LAYOUT == LAYOUT_ROWS
  uint start = (s.start + first) / VECTOR_ELEMENTS;
  uint vectors = min(WINDOW / VECTOR_ELEMENTS, (s.end - first + VECTOR_ELEMENTS - 1) / VECTOR_ELEMENTS);
#if !IS_WIDE
  // Above the cut is from the next key on, of which the last has none.
  uint above = s.cut.key + 1;
  uint has_above = above != 0 ? 1 : 0;
#endif
  [loop] for (uint i = 0; i < vectors; i += 4) {
    [unroll] for (uint u = 0; u < 4; ++u) {
      uint4 v = Input[start + min(i + u, vectors - 1)];
      uint item = first + (i + u) * VECTOR_ELEMENTS;
#if IS_WIDE
      wanted |= uint4((uint)IsWanted(KeyOf(v.xy), item, s),
                      (uint)IsWanted(KeyOf(v.zw), item, s), 0, 0) << (i + u);
#else
      bool takes_equal = item < s.equals_end;
      uint least = takes_equal ? s.cut.key : above;
      uint is_live = takes_equal ? 1 : has_above;
      [unroll] for (uint set = 0; set < WORD_SETS; ++set) {
        uint4 keys = FoldNans(RawKeysOf(WordsOf(v, set)));
        wanted |= ((uint4)(keys >= (uint4)least) & is_live) << ((i + u) * WORD_SETS + set);
      }
#endif
    }
  }
  // What lies outside of the sequence, or was read twice.
  if (first == 0) {
    [loop] for (uint j = 0; j < s.before; ++j) wanted &= ~BitOf(j);
  }
  [loop] for (uint k = s.end - first; k < min(WINDOW, (vectors + 3) * VECTOR_ELEMENTS); ++k) {
    wanted &= ~BitOf(k);
  }
#else
  uint count = min(WINDOW, s.end - first);
  [loop] for (uint i = 0; i < count; ++i) {
    wanted.x |= (uint)IsWanted(LoadItem(s, first + i), first + i, s) << i;
  }
#endif
  return wanted;
}

// Returns the place behind the last. Bits are in the order of their items: vector by vector, word by
// word.
uint Collect(Sequence s, uint first, uint4 wanted, uint list, uint place) {
  [loop] while (Any(wanted)) {
#if LAYOUT == LAYOUT_ROWS
    uint vector_bit = firstbitlow(wanted.x | wanted.y | wanted.z | wanted.w) / SETS * SETS;
    uint2 bit = FirstBitOf(wanted & (((1u << SETS) - 1) << vector_bit));
#else
    uint2 bit = uint2(0, firstbitlow(wanted.x));
#endif
    uint item = ItemOf(bit.x, bit.y);
    wanted &= ~BitOf(item);
    item += first;
    StoreCandidate(list, place, LoadItem(s, item), c.part.first_position + item - s.before);
    ++place;
  }
  return place;
}

// After window `window` of block `block`, in which nothing is wanted.
uint NextWindow(uint window, uint block) {
#if ALONE
  return (block + 1) << c.block_window_bits;
#else
  return window + c.window_stride;
#endif
}

// A lane takes windows of a sequence. Blocks that are no shorter tell by their keys whether theirs are
// wanted. Neighbouring lanes read neighbours: windows of rows, elsewhere sequences.
void CollectWindows(uint unit) {
#if LAYOUT == LAYOUT_ROWS
  uint sequence = unit / c.sequence_lanes;
  uint run = unit % c.sequence_lanes;
#else
  uint sequence = unit % c.sequences;
  uint run = unit / c.sequences;
#endif
  uint header = HeaderOf(sequence);
  Sequence s;
  s.cut = LoadCut(header);
  uint start = FirstElement(KeptOffsets(sequence).input);
  s.before = ElementsBefore(start);
  s.start = start - s.before;
  s.end = s.before + c.part.length;
  s.equals_end = EqualsEnd(s.cut);
  uint key_base = KeyBase(sequence) + c.first_block * c.keys.item_stride;
  uint list = sequence * c.candidate_stride;
  uint place = 0;
  uint window = run * c.lane_stride;
  uint stop = min((s.end + WINDOW - 1) / WINDOW, window + c.lane_windows * c.window_stride);
  [loop] while (window < stop) {
    bool is_open = c.skips_blocks == 0;
    // Each lane on to a window of its own: they test together.
    [loop] while (!is_open && window < stop) {
      uint block = window >> c.block_window_bits;
      is_open = IsAbove(KeyAt(key_base + block * c.keys.item_stride), block + c.first_block, s.cut);
      if (!is_open) window = NextWindow(window, block);
    }
    if (is_open) {
      uint4 wanted = Test(s, window * WINDOW);
      if (Any(wanted)) {
#if !ALONE
        uint4 counts = countbits(wanted);
        InterlockedAdd(Headers[header + COUNT_AT], counts.x + counts.y + counts.z + counts.w,
                       place);
#endif
        place = Collect(s, window * WINDOW, wanted, list, place);
      }
      window += c.window_stride;
    }
  }
#if ALONE
  Headers[header + COUNT_AT] = place;
#endif
}

#else

// A lane takes four columns, WORD_SETS apart: those of one set of words.
struct Columns {
  uint start;  // of the vectors that they lie in
  uint set;
  uint4 key;  // of their cuts
  uint4 equals_end;
};

uint4 LoadItems(Columns s, uint item) {
  uint at = s.start + item * c.part.element_stride;
  return FoldNans(RawKeysOf(WordsOf(Input[at / VECTOR_ELEMENTS], s.set)));
}

// 1 where a key of item `item` is wanted.
uint4 Wanted(Columns s, uint4 keys, uint item) {
  uint4 equals = (uint4)(keys == s.key) & (uint4)((uint4)item < s.equals_end);
  return (uint4)(keys > s.key) | equals;
}

uint4 TestItems(Columns s, uint first) {
  uint4 wanted = (uint4)0;
  uint count = min(WINDOW, c.part.length - first);
  [loop] for (uint i = 0; i < count; ++i) {
    wanted |= Wanted(s, LoadItems(s, first + i), first + i) << i;
  }
  return wanted;
}

void CollectWindows(uint unit) {
  Columns s;
  s.set = unit % WORD_SETS;
  uint vectors = (c.keys.columns + VECTOR_ELEMENTS - 1) / VECTOR_ELEMENTS;
  uint outer = unit / WORD_SETS / vectors;
  uint column = unit / WORD_SETS % vectors * VECTOR_ELEMENTS;
  s.start = FirstElement(KeptOffsets(outer * c.keys.columns + column).input);
  column += s.set;
  if (column >= c.keys.columns) return;
  uint sequence = outer * c.keys.columns + column;
  // Columns past the last want nothing.
  s.key = (uint4)0xFFFFFFFFu;
  s.equals_end = (uint4)0;
  [unroll] for (uint i = 0; i < 4; ++i) {
    if (column + i * WORD_SETS < c.keys.columns) {
      Cut cut = LoadCut(HeaderOf(sequence + i * WORD_SETS));
      s.key[i] = cut.key;
      s.equals_end[i] = EqualsEnd(cut);
    }
  }
  uint key_base = KeyBase(sequence) / KEY_STEP;
  uint4 places = (uint4)0;
  uint first = 0;
  [loop] while (first < c.part.length) {
    bool is_open = true;
    uint next = first + WINDOW;
    if (c.skips_blocks != 0) {
      uint block = first / c.block_length;
      uint4 keys = Keys[key_base + block * (c.keys.item_stride / KEY_STEP)];
      is_open = Any(Wanted(s, keys, block * c.block_length));
      if (!is_open) next = (block + 1) * c.block_length;
    }
    uint4 wanted = (uint4)0;
    [branch] if (is_open) wanted = TestItems(s, first);
    [loop] while (Any(wanted)) {
      uint2 bit = FirstBitOf(wanted);
      uint4 mine = (uint4)(uint4(0, 1, 2, 3) == (uint4)bit.x);
      wanted &= ~(mine << bit.y);
      uint item = first + bit.y;
      uint4 keys = LoadItems(s, item) * mine;
      uint4 place = places * mine;
      StoreCandidate((sequence + bit.x * WORD_SETS) * c.candidate_stride,
                     place.x | place.y | place.z | place.w, keys.x | keys.y | keys.z | keys.w,
                     c.part.first_position + item);
      places += mine;
    }
    first = next;
  }
  [unroll] for (uint j = 0; j < 4; ++j) {
    if (column + j * WORD_SETS < c.keys.columns) {
      Headers[HeaderOf(sequence + j * WORD_SETS) + COUNT_AT] = places[j];
    }
  }
}

#endif

[numthreads(THREADS, 1, 1)]
void CollectAbove(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit < c.groups.unit_count) CollectWindows(unit);
}
