// top_k's first reading: a sequence is cut into blocks of neighbours, and the best key of each is
// stored. Only the blocks of the k best keys, the earlier among equal ones, can hold the k best
// elements.
//   LAYOUT   how sequences lie in memory: LAYOUT_*
//   TEAM     rows: lanes that read a block together
//   TILED    columns: 1 where a lane takes several vectors of a row
//   RUNNERS  columns: 1 where second best keys are stored too
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKBlocksConstants
#include "include/kept_dims.hlsli"
#include "include/top_k_elements.hlsli"
#include "include/top_k_key.hlsli"

#if LAYOUT == LAYOUT_ROWS

RWBuffer<BITS> Keys : register(u0);

// The best key among the elements of one vector that lie in the sequence; `first` is the position
// of the vector's first element and wraps below zero.
BITS BestInside(uint4 v, uint first) {
  BITS best = (BITS)0;
  [loop] for (uint i = 0; i < VECTOR_ELEMENTS; ++i) {
    if (first + i < c.part.length) best = LargerKey(best, KeyOf(ElementOf(v, i)));
  }
  return best;
}

#if TEAM > 1
groupshared BITS shared_best[THREADS * TEAM];
#endif

// The best key of a block, as far as one member of its team reads it.
BITS BestOfShare(uint start, uint block, uint member) {
  uint vectors = start / VECTOR_ELEMENTS;
  uint before = start % VECTOR_ELEMENTS;
  uint begin = block * (c.block_length / VECTOR_ELEMENTS);
  uint stop = begin + c.block_length / VECTOR_ELEMENTS;
  uint past = before + c.part.length;
  uint whole_end = min(stop, past / VECTOR_ELEMENTS);
  BITS best = (BITS)0;
  uint at = begin + member;
  if (at == 0 && before != 0) {
    if (whole_end > 0) best = BestInside(Input[vectors], 0u - before);
    at = TEAM;
  }
  // The vector that the sequence ends inside of.
  if (member == 0 && whole_end < stop && begin <= whole_end && whole_end * VECTOR_ELEMENTS < past) {
    best = LargerKey(best, BestInside(Input[vectors + whole_end],
                                      whole_end * VECTOR_ELEMENTS - before));
  }
#if IS_WIDE
  [loop] for (; at < whole_end; at += TEAM) best = LargerKey(best, BestKey(Input[vectors + at]));
#else
  if (at < whole_end) {
    uint4 keys = (uint4)0;
    [loop] for (; at + 3 * TEAM < whole_end; at += 4 * TEAM) {
      keys = max(keys, max(max(BestRawKeys(Input[vectors + at]),
                               BestRawKeys(Input[vectors + at + TEAM])),
                           max(BestRawKeys(Input[vectors + at + 2 * TEAM]),
                               BestRawKeys(Input[vectors + at + 3 * TEAM]))));
    }
    [loop] for (; at < whole_end; at += TEAM) keys = max(keys, BestRawKeys(Input[vectors + at]));
    best = LargerKey(best, BestOfKeys(keys));
  }
#endif
  return best;
}

// A team of neighbouring lanes reads TEAM blocks, one after another, side by side; then each of its
// lanes combines one block. A team of one reads on from where it was. So several times over, since
// a group costs a software device as much as reading some thousand bytes.
[numthreads(THREADS, 1, 1)]
void BestOfBlocks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint member = lane % TEAM;
  uint team = EnterGroup(group) * (THREADS / TEAM) + lane / TEAM;
  uint sequence = team / c.sequence_teams;
  uint first_block = team % c.sequence_teams * c.team_turns * TEAM;
  bool is_used = team < c.groups.unit_count;
  uint start = 0;
  if (is_used) start = FirstElement(KeptOffsets(sequence).input);
  uint out_at = instance.write0 + sequence * c.keys.sequence_stride + c.first_block;
  [loop] for (uint turn = 0; turn < c.team_turns; ++turn) {
#if TEAM > 1
    if (is_used) {
      [loop] for (uint j = 0; j < TEAM; ++j) {
        shared_best[(lane - member + j) * TEAM + member] =
            BestOfShare(start, first_block + j, member);
      }
    }
    GroupMemoryBarrierWithGroupSync();
    BITS best = shared_best[lane * TEAM];
    [unroll] for (uint i = 1; i < TEAM; ++i) best = LargerKey(best, shared_best[lane * TEAM + i]);
    GroupMemoryBarrierWithGroupSync();
#else
    BITS best = (BITS)0;
    if (is_used) best = BestOfShare(start, first_block, 0);
#endif
    if (is_used && first_block + member < c.block_count) {
      Keys[out_at + first_block + member] = best;
    }
    first_block += TEAM;
  }
}

#elif LAYOUT == LAYOUT_COLUMNS && !IS_WIDE

RWBuffer<uint4> Keys : register(u0);
// For each vector of Keys the second best keys, and the rows of the best.
#if RUNNERS
RWBuffer<uint4> Runners : register(u1);
#endif

uint4 UnsignedKeys(int4 keys) { return FoldNans((uint4)keys ^ 0x80000000u); }

#define SETS WORD_SETS
#include "include/each_set.hlsli"

// Of the block so far, in the columns of a set: the best key, and with RUNNERS its row and the second
// best key, which spare lanes that keep few the search of most blocks: that would read one element from
// each of many pages. Keys are signed, which software compares in one step. NaNs are folded in the end:
// of several the best's row may be another's than the first's, but then the second best is a NaN too,
// and the block is searched.
struct Best {
  int4 key;
#if RUNNERS
  int4 second;
  uint4 row;
#endif
};

struct Bests {
#define MEMBER(i) Best s##i;
  EACH_SET(MEMBER)
};

Best NoBest(uint row) {
  Best best;
  best.key = SignedKeys((uint4)0);
#if RUNNERS
  best.second = SignedKeys((uint4)0);
  best.row = (uint4)row;
#endif
  return best;
}

void TakeFour(inout Best best, uint4 w0, uint4 w1, uint4 w2, uint4 w3, uint row) {
  int4 k0 = SignedKeys(RawKeysOf(w0));
  int4 k1 = SignedKeys(RawKeysOf(w1));
  int4 k2 = SignedKeys(RawKeysOf(w2));
  int4 k3 = SignedKeys(RawKeysOf(w3));
  int4 low = max(k0, k1);
  int4 high = max(k2, k3);
  int4 step_best = max(low, high);
#if RUNNERS
  // A last row that is repeated may seem its own second: then its block is searched.
  int4 step_second = max(max(min(k0, k1), min(k2, k3)), min(low, high));
  // How many rows stand before the best: each mask is all ones where its row is worse.
  uint4 skip = (0u - (uint4)(k2 < step_best)) & 1;
  skip = (0u - (uint4)(k1 < step_best)) & (skip + 1);
  skip = (0u - (uint4)(k0 < step_best)) & (skip + 1);
  uint4 above = 0u - (uint4)(step_best > best.key);
  best.second = max(max(best.second, step_second), min(best.key, step_best));
  best.row ^= (best.row ^ (skip + row)) & above;
#endif
  best.key = max(best.key, step_best);
}

Bests NoBests(uint row) {
  Bests bests;
#define BEGIN(i) bests.s##i = NoBest(row);
  EACH_SET(BEGIN)
  return bests;
}

// Four rows at a time: what is carried from step to step does not fit into registers.
void TakeRows(inout Bests bests, uint column, uint begin, uint end, uint stride) {
  [loop] for (uint row = begin; row < end; row += 4) {
    uint4 rows = min(uint4(row, row + 1, row + 2, row + 3), end - 1) * stride;
    uint4 v0 = Input[column + rows.x];
    uint4 v1 = Input[column + rows.y];
    uint4 v2 = Input[column + rows.z];
    uint4 v3 = Input[column + rows.w];
#define TAKE(i) \
  TakeFour(bests.s##i, WordsOf(v0, i), WordsOf(v1, i), WordsOf(v2, i), WordsOf(v3, i), row);
    EACH_SET(TAKE)
  }
}

// Words of set s are elements s, s + WORD_SETS, ... of their vector.
void StoreSet(Best best, uint at) {
  Keys[instance.write0 + at] = UnsignedKeys(best.key);
#if RUNNERS
  Runners[instance.write1 + 2 * at] = UnsignedKeys(best.second);
  Runners[instance.write1 + 2 * at + 1] = best.row;
#endif
}

void StoreBests(Bests bests, uint vector_number) {
#define STORE(i) StoreSet(bests.s##i, vector_number * WORD_SETS + i);
  EACH_SET(STORE)
}

#if TILED

#include "include/waiting_words.hlsli"

WORD_ARRAYS(waiting_key, TOP_K_TILE_SETS)
#if RUNNERS
WORD_ARRAYS(waiting_second, TOP_K_TILE_SETS)
WORD_ARRAYS(waiting_row, TOP_K_TILE_SETS)
#endif

Best WaitingBest(uint place) {
  Best best;
  best.key = (int4)READ_WORDS(waiting_key, place);
#if RUNNERS
  best.second = (int4)READ_WORDS(waiting_second, place);
  best.row = READ_WORDS(waiting_row, place);
#endif
  return best;
}

void LetBestWait(Best best, uint place) {
  WRITE_WORDS(waiting_key, place, (uint4)best.key)
#if RUNNERS
  WRITE_WORDS(waiting_second, place, (uint4)best.second)
  WRITE_WORDS(waiting_row, place, best.row)
#endif
}

Bests WaitingBests(uint t) {
  Bests bests;
#define READ(i) bests.s##i = WaitingBest(t * WORD_SETS + i);
  EACH_SET(READ)
  return bests;
}

void LetBestsWait(Bests bests, uint t) {
#define WRITE(i) LetBestWait(bests.s##i, t * WORD_SETS + i);
  EACH_SET(WRITE)
}

#endif

// Lanes take neighbouring vectors of a row, in tiles several of them and a few rows at a time, as
// those of reduce_tiles.hlsli do.
[numthreads(THREADS, 1, 1)]
void BestOfBlocks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  uint row_lane = unit % c.row_lanes;
  uint block = unit / c.row_lanes % c.block_count;
  uint outer = unit / c.row_lanes / c.block_count;
  uint start = FirstElement(KeptOffsets(outer).input) / VECTOR_ELEMENTS;
  uint stride = c.part.element_stride / VECTOR_ELEMENTS;
  uint begin = block * c.block_length;
  uint end = min(begin + c.block_length, c.part.length);
  uint out_row =
      (outer * c.keys.sequence_stride + (c.first_block + block) * c.keys.item_stride) / VECTOR_ELEMENTS;
#if TILED
  uint first = row_lane / THREADS * (THREADS * c.tile_vectors) + row_lane % THREADS;
  uint t;
  [loop] for (t = 0; t < c.tile_vectors; ++t) LetBestsWait(NoBests(begin), t);
  [loop] for (uint from = begin; from < end; from += c.tile_rows) {
    [loop] for (t = 0; t < c.tile_vectors; ++t) {
      Bests bests = WaitingBests(t);
      uint column = start + min(first + t * THREADS, c.row_vectors - 1);
      TakeRows(bests, column, from, min(from + c.tile_rows, end), stride);
      LetBestsWait(bests, t);
    }
  }
  [loop] for (t = 0; t < c.tile_vectors && first + t * THREADS < c.row_vectors; ++t) {
    StoreBests(WaitingBests(t), out_row + first + t * THREADS);
  }
#else
  Bests bests = NoBests(begin);
  TakeRows(bests, start + row_lane, begin, end, stride);
  StoreBests(bests, out_row + row_lane);
#endif
}

#else

RWBuffer<BITS> Keys : register(u0);

// One lane takes one block, element by element; lanes take neighbouring sequences.
[numthreads(THREADS, 1, 1)]
void BestOfBlocks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.groups.unit_count) return;
  uint sequence = unit % c.sequences;
  uint block = unit / c.sequences;
  uint start = FirstElement(KeptOffsets(sequence).input);
  uint item = block * c.block_length;
  uint end = min(item + c.block_length, c.part.length);
  BITS best = (BITS)0;
  [loop] for (; item < end; ++item) {
    best = LargerKey(best, KeyOf(LoadElement(start, item)));
  }
  Keys[instance.write0 + (c.first_block + block) * c.keys.item_stride + sequence] = best;
}

#endif
