// top_k for more ranks than a lane keeps: a cut that the best blocks lie above, their elements above
// it, and, where those are many more than k, fewer of them, in any order. Sorting is left to
// top_k.hlsl.
//   LAYOUT        how sequences lie in memory: LAYOUT_*
//   ALONE         cuts: 1 where a lane has a sequence of its own, 0 where a group's lanes share one
//   STORES_WORDS  how candidates are written: records.hlsli
#include "include/candidate.hlsli"
#include "include/records.hlsli"
#include "include/top_k_elements.hlsli"
#include "include/top_k_header.hlsli"
#include "include/top_k_key.hlsli"
#include "include/top_k_work.hlsli"

Buffer<uint4> Keys : register(t1);
#define BLOCK_KEYS Keys
#include "include/top_k_block_keys.hlsli"

RWBuffer<WRITTEN_RECORD> Records : register(u0);  // of each sequence: candidates
RWBuffer<uint> Headers : register(u1);

#if IS_WIDE
#define ORDER_BITS 96
#else
#define ORDER_BITS 64
#endif

// Key and inverted position are one long number that orders candidates: no two are equal, and the
// larger comes first.
struct Cut {
  BITS key;
  uint tail;
};

bool IsAbove(BITS key, uint position, Cut cut) {
  return KeyAbove(key, cut.key) || (KeyEqual(key, cut.key) && ~position >= cut.tail);
}

Cut Raise(Cut cut, uint digit, uint shift) {
  if (shift < 32) {
    cut.tail += digit << shift;
  } else {
#if IS_WIDE
    if (shift < 64) {
      cut.key.x += digit << (shift - 32);
    } else {
      cut.key.y += digit << (shift - 64);
    }
#else
    cut.key += digit << (shift - 32);
#endif
  }
  return cut;
}

// Three cuts at a time.
struct Cuts {
  Cut low;
  Cut middle;
  Cut high;
};

uint3 CountOne(BITS key, uint position, Cuts cuts) {
  return uint3((uint)IsAbove(key, position, cuts.low), (uint)IsAbove(key, position, cuts.middle),
               (uint)IsAbove(key, position, cuts.high));
}

#if ALONE
#define SEARCHERS 1
#else
#define SEARCHERS THREADS
groupshared uint shared_counts[3];
#endif

// Who searches what.
struct Search {
  uint sequence;
  uint lane;     // below SEARCHERS
  bool is_real;  // false: only goes along
};

Search EnterSearch(uint3 group, uint lane) {
  Search search;
#if ALONE
  uint unit = EnterGroup(group) * THREADS + lane;
  search.is_real = unit < c.sequences;
  search.sequence = min(unit, c.sequences - 1);
  search.lane = 0;
#else
  search.sequence = EnterSequence(group, search.is_real);
  search.lane = lane;
#endif
  return search;
}

uint3 CountKeys(uint lane, uint base, Cuts cuts) {
  uint3 counts = (uint3)0;
  [loop] for (uint block = lane * KEY_STEP; block < c.list_length; block += SEARCHERS * KEY_STEP) {
    uint4 v = LoadKeys(base, block);
    [unroll] for (uint i = 0; i < KEY_STEP; ++i) {
      counts += CountOne(KeyOfStep(v, i), block + i, cuts);
    }
  }
  return counts;
}

uint3 CountCandidates(uint lane, uint base, uint count, Cuts cuts) {
  uint3 counts = (uint3)0;
  [loop] for (uint i = lane; i < count; i += SEARCHERS) {
    uint4 record = Input[base + i];
    counts += CountOne(RecordKey(record), record.z, cuts);
  }
  return counts;
}

// Of all searchers. Through the group's memory, so that all compilers see lanes agree.
uint3 SumCounts(uint lane, uint3 counts) {
#if !ALONE
  if (lane < 3) shared_counts[lane] = 0;
  GroupMemoryBarrierWithGroupSync();
  InterlockedAdd(shared_counts[0], counts.x);
  InterlockedAdd(shared_counts[1], counts.y);
  InterlockedAdd(shared_counts[2], counts.z);
  GroupMemoryBarrierWithGroupSync();
  counts = uint3(shared_counts[0], shared_counts[1], shared_counts[2]);
  GroupMemoryBarrierWithGroupSync();
#endif
  return counts;
}

// A cut with `wanted` to `most` of `count` items above it, blocks or candidates; none where they are
// no more. Two binary digits a round; every searcher finds the same.
Cut FindCutOf(bool blocks, uint lane, uint base, uint count, uint wanted, uint most) {
  Cut cut;
  cut.key = (BITS)0;
  cut.tail = 0;
  uint above = SumCounts(lane, uint3(lane == 0 ? count : 0, 0, 0)).x;
  uint shift = ORDER_BITS;
  [loop] while (shift > 0 && above > most) {
    shift -= 2;
    Cuts cuts;
    cuts.low = Raise(cut, 1, shift);
    cuts.middle = Raise(cut, 2, shift);
    cuts.high = Raise(cut, 3, shift);
    uint3 counts;
    if (blocks) {
      counts = CountKeys(lane, base, cuts);
    } else {
      counts = CountCandidates(lane, base, count, cuts);
    }
    counts = SumCounts(lane, counts);
    uint digit = 0;
    [unroll] for (uint i = 0; i < 3; ++i) {
      if (counts[i] >= wanted) {
        digit = i + 1;
        above = counts[i];
      }
    }
    cut = Raise(cut, digit, shift);
  }
  return cut;
}

// Of a sequence: k best blocks, or a few more where that ends the search early.
[numthreads(THREADS, 1, 1)]
void FindCut(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Search search = EnterSearch(group, lane);
  uint base = KeyBase(search.sequence);
  Cut cut = FindCutOf(true, search.lane, base, c.list_length, c.k, c.runs);
  if (search.is_real && search.lane == 0) {
    uint at = HeaderOf(search.sequence);
    Headers[at + COUNT_AT] = 0;
    Headers[at + IS_TAKEN_AT] = 0;
    Headers[at + IS_SPREAD_AT] = 0;
    Headers[at + TAIL_AT] = cut.tail;
#if IS_WIDE
    Headers[at + KEY_AT] = cut.key.x;
    Headers[at + KEY_AT + 1] = cut.key.y;
#else
    Headers[at + KEY_AT] = cut.key;
#endif
  }
}

// --- windows: neighbours that a lane tests first, a bit each, and then goes through the bits ---

// Elements of a block behind its sequence's start are numbered as items: those of rows start at the
// vector in which the sequence does.
#if IS_WIDE
#define SETS 1  // of words in a vector
#else
#define SETS WORD_SETS
#endif

// Items of a window: WindowLength of top_k_select.cc. Of rows a vector holds their bits.
#if LAYOUT == LAYOUT_ROWS
#define WINDOW_VECTORS (32 / SETS)
#define WINDOW (WINDOW_VECTORS * VECTOR_ELEMENTS)
#else
#define WINDOW 32
#endif

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
  uint vectors = min(WINDOW_VECTORS, (s.end - first + VECTOR_ELEMENTS - 1) / VECTOR_ELEMENTS);
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

void Collect(Sequence s, uint first, uint4 wanted, uint header, uint out_at) {
  uint4 counts = countbits(wanted);
  uint place;
  InterlockedAdd(Headers[header + COUNT_AT], counts.x + counts.y + counts.z + counts.w, place);
  out_at += place;
  [loop] while ((wanted.x | wanted.y | wanted.z | wanted.w) != 0) {
    uint low_word = wanted.x != 0 ? 0 : 1;
    uint high_word = wanted.z != 0 ? 2 : 3;
    uint low_bits = wanted.x != 0 ? wanted.x : wanted.y;
    uint high_bits = wanted.z != 0 ? wanted.z : wanted.w;
    uint word = low_bits != 0 ? low_word : high_word;
    uint item = ItemOf(word, firstbitlow(low_bits != 0 ? low_bits : high_bits));
    wanted &= ~BitOf(item);
    item += first;
    STORE_RECORD(Records, instance.write0, out_at,
                 PackCandidate(LoadItem(s, item), c.index_base + item - s.before), CANDIDATE_WORDS)
    ++out_at;
  }
}

// A lane takes windows of a sequence. Blocks that are no shorter tell by their keys whether theirs are
// wanted. Neighbouring lanes read neighbours: windows of rows, elsewhere sequences.
[numthreads(THREADS, 1, 1)]
void CollectAbove(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
#if LAYOUT == LAYOUT_ROWS
  uint sequence = unit / c.runs;
  uint run = unit % c.runs;
#else
  uint sequence = unit % c.sequences;
  uint run = unit / c.sequences;
#endif
  uint header = HeaderOf(sequence);
  Sequence s;
  s.cut.tail = Headers[header + TAIL_AT];
#if IS_WIDE
  s.cut.key = uint2(Headers[header + KEY_AT], Headers[header + KEY_AT + 1]);
#else
  s.cut.key = Headers[header + KEY_AT];
#endif
  uint start = FirstElement(KeptOffsets(sequence).input);
#if LAYOUT == LAYOUT_ROWS
  s.before = start % VECTOR_ELEMENTS;
#else
  s.before = 0;
#endif
  s.start = start - s.before;
  s.end = s.before + c.index_count;
  // Blocks up to the cut's own take what equals it: the earlier come first.
  uint last_equal = ~s.cut.tail;
  s.equals_end = last_equal < c.block_base
                     ? 0
                     : (min(last_equal - c.block_base, c.block_count - 1) + 1) * c.block_length;
  uint key_base = KeyBase(sequence) + c.block_base * c.key_item_stride;
  uint out_at = sequence * c.record_stride;
  uint window = run * c.read_stride;
  uint stop = min((s.end + WINDOW - 1) / WINDOW, window + c.split_items * c.read_item_stride);
  [loop] while (window < stop) {
    bool is_open = c.item_count == 0;
    // Each lane on to a window of its own: they test together.
    [loop] while (!is_open && window < stop) {
      uint block = window >> c.lane_bits;
      is_open = IsAbove(KeyAt(key_base + block * c.key_item_stride), block + c.block_base, s.cut);
      if (!is_open) window += c.read_item_stride;
    }
    if (is_open) {
      uint4 wanted = Test(s, window * WINDOW);
      if ((wanted.x | wanted.y | wanted.z | wanted.w) != 0) {
        Collect(s, window * WINDOW, wanted, header, out_at);
      }
      window += c.read_item_stride;
    }
  }
}

#if !ALONE
groupshared uint shared_taken;
#endif

// Of a sequence with more than c.runs candidates, k to c.runs of the best. Fewer stay where they are.
[numthreads(THREADS, 1, 1)]
void TakeBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  Search search = EnterSearch(group, lane);
  uint header = HeaderOf(search.sequence);
  uint count = Headers[header + COUNT_AT];
  uint base = instance.read0 + search.sequence * c.read_stride;
  Cut cut = FindCutOf(false, search.lane, base, count, c.k, c.runs);
  bool takes = search.is_real && count > c.runs;
  uint taken = 0;
#if !ALONE
  if (lane == 0) shared_taken = 0;
  GroupMemoryBarrierWithGroupSync();
#endif
  [loop] for (uint i = search.lane; takes && i < count; i += SEARCHERS) {
    uint4 record = Input[base + i];
    if (IsAbove(RecordKey(record), record.z, cut)) {
      uint place;
#if ALONE
      place = taken++;
#else
      InterlockedAdd(shared_taken, 1, place);
#endif
      STORE_RECORD(Records, instance.write0, search.sequence * c.record_stride + place, record,
                   CANDIDATE_WORDS)
    }
  }
#if !ALONE
  GroupMemoryBarrierWithGroupSync();
  taken = shared_taken;
#endif
  if (takes && search.lane == 0) {
    Headers[header + COUNT_AT] = taken;
    Headers[header + IS_TAKEN_AT] = 1;
  }
}
