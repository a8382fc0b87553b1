// top_k for more ranks than a lane keeps: a cut that the best blocks lie above, their elements above
// it, and of those the k best, in any order. Sorting is left to top_k.hlsl.
//   LAYOUT  how sequences lie in memory: LAYOUT_*
#include "include/candidate.hlsli"
#include "include/top_k_key.hlsli"

Buffer<uint4> Input : register(t0);
Buffer<uint4> Keys : register(t1);
#define BLOCK_KEYS Keys
#include "include/top_k_block_keys.hlsli"

RWBuffer<uint4> Records : register(u0);
RWBuffer<uint> Work : register(u1);  // of each sequence: a count, the cut, the candidates

#define COUNT_AT 0
#define TAIL_AT 1
#define KEY_AT 2
#define CANDIDATES_AT 4
#if IS_WIDE
#define CANDIDATE_WORDS 3
#define ORDER_BITS 96
#else
#define CANDIDATE_WORDS 2
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

groupshared uint shared_counts[3];

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

uint3 CountKeys(uint lane, uint base, Cuts cuts) {
  uint3 counts = (uint3)0;
  [loop] for (uint block = lane * KEY_STEP; block < c.list_length; block += THREADS * KEY_STEP) {
    uint4 v = LoadKeys(base, block);
    [unroll] for (uint i = 0; i < KEY_STEP; ++i) {
      counts += CountOne(KeyOfStep(v, i), block + i, cuts);
    }
  }
  return counts;
}

BITS CandidateKey(uint at) {
#if IS_WIDE
  return uint2(Work[at + 1], Work[at + 2]);
#else
  return Work[at + 1];
#endif
}

uint3 CountCandidates(uint lane, uint base, uint count, Cuts cuts) {
  uint3 counts = (uint3)0;
  [loop] for (uint i = lane; i < count; i += THREADS) {
    uint at = base + i * CANDIDATE_WORDS;
    counts += CountOne(CandidateKey(at), Work[at], cuts);
  }
  return counts;
}

// A cut with `wanted` to `most` of the group's items above it: of blocks, or of `count` candidates.
// Two binary digits a round; every lane finds the same.
Cut FindCutOf(bool blocks, uint lane, uint base, uint count, uint wanted, uint most) {
  Cut cut;
  cut.key = (BITS)0;
  cut.tail = 0;
  uint above = 0xFFFFFFFFu;
  uint shift = ORDER_BITS;
  [loop] while (shift > 0 && above > most) {
    shift -= 2;
    Cuts cuts;
    cuts.low = Raise(cut, 1, shift);
    cuts.middle = Raise(cut, 2, shift);
    cuts.high = Raise(cut, 3, shift);
    if (lane < 3) shared_counts[lane] = 0;
    GroupMemoryBarrierWithGroupSync();
    uint3 counts;
    if (blocks) {
      counts = CountKeys(lane, base, cuts);
    } else {
      counts = CountCandidates(lane, base, count, cuts);
    }
    InterlockedAdd(shared_counts[0], counts.x);
    InterlockedAdd(shared_counts[1], counts.y);
    InterlockedAdd(shared_counts[2], counts.z);
    GroupMemoryBarrierWithGroupSync();
    uint digit = 0;
    [loop] for (uint i = 0; i < 3; ++i) {
      if (shared_counts[i] >= wanted) {
        digit = i + 1;
        above = shared_counts[i];
      }
    }
    cut = Raise(cut, digit, shift);
    GroupMemoryBarrierWithGroupSync();
  }
  return cut;
}

// One group a sequence: k best blocks, or a few more where that ends the search early.
[numthreads(THREADS, 1, 1)]
void FindCut(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint sequence = EnterGroup(group);
  Cut cut = FindCutOf(true, lane, KeyBase(min(sequence, c.sequences - 1)), 0, c.k, c.runs);
  if (lane == 0 && sequence < c.sequences) {
    uint at = instance.write1 + sequence * c.record_stride;
    Work[at + COUNT_AT] = 0;
    Work[at + TAIL_AT] = cut.tail;
#if IS_WIDE
    Work[at + KEY_AT] = cut.key.x;
    Work[at + KEY_AT + 1] = cut.key.y;
#else
    Work[at + KEY_AT] = cut.key;
#endif
  }
}

void Collect(uint work, BITS key, uint position) {
  uint place;
  InterlockedAdd(Work[work + COUNT_AT], 1, place);
  uint at = work + CANDIDATES_AT + place * CANDIDATE_WORDS;
  Work[at] = position;
#if IS_WIDE
  Work[at + 1] = key.x;
  Work[at + 2] = key.y;
#else
  Work[at + 1] = key;
#endif
}

// A lane takes blocks: of those above the cut, the elements not below the cut's key.
[numthreads(THREADS, 1, 1)]
void CollectAbove(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint sequence = flat_group / c.splits;
  if (sequence >= c.sequences) return;
  uint work = instance.write1 + sequence * c.record_stride;
  Cut cut;
  cut.tail = Work[work + TAIL_AT];
#if IS_WIDE
  cut.key = uint2(Work[work + KEY_AT], Work[work + KEY_AT + 1]);
#else
  cut.key = Work[work + KEY_AT];
#endif
  uint start = FirstElement(KeptOffsets(sequence).input);
  uint key_base = KeyBase(sequence) + c.block_base * c.key_item_stride;
  uint block = flat_group % c.splits * c.split_items;
  uint block_end = min(block + c.split_items, c.block_count);
  [loop] for (block += lane; block < block_end; block += THREADS) {
    if (IsAbove(KeyAt(key_base + block * c.key_item_stride), block + c.block_base, cut)) {
      uint item = block * c.block_length;
#if LAYOUT == LAYOUT_ROWS
      uint before = start % VECTOR_ELEMENTS;
      uint end = min(item + c.block_length, before + c.index_count);
      [loop] for (; item < end; item += VECTOR_ELEMENTS) {
        uint4 v = Input[(start - before + item) / VECTOR_ELEMENTS];
        [branch] if (!KeyAbove(cut.key, BestKey(v))) {
          [loop] for (uint i = 0; i < VECTOR_ELEMENTS; ++i) {
            BITS key = KeyOf(ElementOf(v, i));
            uint local = item + i - before;
            if (local < c.index_count && !KeyAbove(cut.key, key)) {
              Collect(work, key, c.index_base + local);
            }
          }
        }
      }
#else
      uint end = min(item + c.block_length, c.index_count);
      [loop] for (; item < end; ++item) {
        uint at = start + item * c.reduced[0].input_stride;
        BITS key = KeyOf(ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS));
        if (!KeyAbove(cut.key, key)) Collect(work, key, c.index_base + item);
      }
#endif
    }
  }
}

groupshared uint shared_taken;

// One group a sequence: the k best candidates, as records.
[numthreads(THREADS, 1, 1)]
void TakeBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat_group = EnterGroup(group);
  uint sequence = min(flat_group, c.sequences - 1);  // groups past it store nothing
  uint work = instance.write1 + sequence * c.record_stride;
  uint count = Work[work + COUNT_AT];
  uint base = work + CANDIDATES_AT;
  if (lane == 0) shared_taken = 0;
  Cut cut = FindCutOf(false, lane, base, count, c.k, c.k);
  [loop] for (uint i = lane; i < count; i += THREADS) {
    uint at = base + i * CANDIDATE_WORDS;
    BITS key = CandidateKey(at);
    if (flat_group < c.sequences && IsAbove(key, Work[at], cut)) {
      uint place;
      InterlockedAdd(shared_taken, 1, place);
      Records[instance.write0 + sequence * c.k + place] = PackCandidate(key, Work[at]);
    }
  }
}
