// top_k by radix selection: a group finds the k best items of its chunk of a sequence.
//   SOURCE, RESULT  top_k_constants.h
//   DIGIT_BITS      log2 of the words of keys in groupshared memory: histograms, or keys to sort
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKSelectConstants
#include "include/top_k_items.hlsli"
#if RESULT != RESULT_RECORDS
#include "include/top_k_outputs.hlsli"
#else
RWBuffer<RECORD> Records : register(u0);
#endif
#define SORT_KEY BITS
#define SORT_WORDS KEY_WORDS
#define SORT_CAPACITY ((1 << DIGIT_BITS) / KEY_WORDS)
#define SORTS_BEFORE CandidateBefore
#include "include/bitonic_sort.hlsli"
// The memory of a later sort.
#define HISTOGRAM(bin) sort_words[bin]
#include "include/top_k_cut.hlsli"

// Loads of a lane in flight at a time, and the items of each.
#if SOURCE == SOURCE_RECORDS
#define LOADED RECORD
#define LOADS 4
#define LOAD_ITEMS 1
#else
#define LOADED uint4
#define LOAD_ITEMS VECTOR_ELEMENTS
#if VECTOR_ELEMENTS == 16
#define LOADS 1  // the code of more would not fit into instruction caches
#else
#define LOADS 2
#endif
#endif

struct Chunk {
  uint first;  // the first item, in the view of t0
  uint count;  // items
};

groupshared uint shared_count;

struct Leader {
  BITS key;
  uint index;
};

// Stores an item for a sort, and counts it. If there are more than c.most, they overwrite each other.
void Collect(BITS key, uint index) {
  uint place;
  InterlockedAdd(shared_count, 1, place);
  place = min(place, c.most - 1);  // Microsoft's compiler rejects a condition here
  StoreSortKey(place, key);
  sort_indices[place] = index;
}

// What a walk does with the items of a chunk.
#define LEADS 0  // finds the best one that the lane sees
#define CUTS 1   // counts the next digit of those at the cut, or collects those at or above it

void Take(uint work, Cut cut, Digit digit, bool collects, BITS key, uint index,
          inout Leader leader) {
  if (work == LEADS) {
    if (KeyAbove(key, leader.key)) {
      leader.key = key;
      leader.index = index;
    }
  } else if (IsAtOrAbove(cut, key, index)) {
    if (collects) {
      Collect(key, index);
    } else if (IsAt(cut, key, index)) {
      InterlockedAdd(HISTOGRAM(DigitOf(cut, digit, key, index)), 1);
    }
  }
}

// Loads that have items of a chunk, and the number of the first one in the view of t0.
uint FirstLoad(Chunk chunk) { return chunk.first / LOAD_ITEMS; }
uint LoadsOf(Chunk chunk) {
  return (chunk.first % LOAD_ITEMS + chunk.count + LOAD_ITEMS - 1) / LOAD_ITEMS;
}

// The index of the first item of a load. Those before the chunk have indices above its count.
uint IndexOf(Chunk chunk, uint load) { return load * LOAD_ITEMS - chunk.first % LOAD_ITEMS; }

Leader Walk(uint lane, Chunk chunk, uint work, Cut cut, Digit digit, bool collects) {
  Leader leader = {(BITS)0, NO_INDEX};
  uint loads = LoadsOf(chunk);
  [loop] for (uint at = lane; at < loads; at += LOADS * THREADS) {
    LOADED loaded[LOADS];
    [unroll] for (uint u = 0; u < LOADS; ++u) {
      loaded[u] = Input[FirstLoad(chunk) + min(at + u * THREADS, loads - 1)];
    }
    [unroll] for (uint w = 0; w < LOADS; ++w) {
      BITS bits[LOAD_ITEMS];
#if SOURCE == SOURCE_RECORDS
      bits[0] = FromRecord(loaded[w]).bits;
#else
      UnpackVector(loaded[w], bits);
#endif
      [unroll] for (uint e = 0; e < LOAD_ITEMS; ++e) {
        uint index = IndexOf(chunk, at + w * THREADS) + e;
        BITS key = CandidateKeyOf(bits[e]);
        if (index < chunk.count) Take(work, cut, digit, collects, key, index, leader);
      }
    }
  }
  return leader;
}

// A share is the loads whose numbers have the same remainder; its best item is its leader. Collects
// all items at or above the k-th leader: at least k, seldom many more, all in the shares of the first
// k leaders. shared_count is their number, or more than c.most if there are fewer than k leaders.
void CollectFromShares(uint lane, Chunk chunk) {
  Digit unused = {0, 0};
  Leader leader = Walk(lane, chunk, LEADS, NoCut(), unused, false);
  StoreSortKey(lane, leader.key);
  sort_indices[lane] = leader.index;
  GroupMemoryBarrierWithGroupSync();
  uint shares = 1u << c.leader_bits;
  if (lane < shares) {
    [loop] for (uint i = lane + shares; i < THREADS; i += shares) Exchange(lane, i);
  }
  SortSegments(lane, shares, c.leader_bits);

  // As many lanes as there are for each of the first k look for the others in its share.
  uint team = THREADS >> SegmentBits(c.ranks.k);
  uint rank = min(lane / team, c.ranks.k - 1);
  uint share = (sort_indices[rank] + chunk.first % LOAD_ITEMS) / LOAD_ITEMS & (shares - 1);
  Cut cut = CutAt(SortKey(c.ranks.k - 1), sort_indices[c.ranks.k - 1]);
  bool has_leaders = sort_indices[c.ranks.k - 1] != NO_INDEX;
  GroupMemoryBarrierWithGroupSync();
  [loop] for (uint s = lane; s < c.most; s += THREADS) {
    StoreSortKey(s, (BITS)0);
    sort_indices[s] = NO_INDEX;
  }
  if (lane == 0) shared_count = has_leaders ? 0 : c.most + 1;
  GroupMemoryBarrierWithGroupSync();
  uint loads = has_leaders && lane / team < c.ranks.k ? LoadsOf(chunk) : 0;
  [loop] for (uint at = share + lane % team * shares; at < loads; at += team * shares) {
    uint end = min(IndexOf(chunk, at + 1), chunk.count);
    [loop] for (uint index = at > 0 ? IndexOf(chunk, at) : 0; index < end; ++index) {
      BITS key = CandidateKeyOf(LoadItem(chunk.first, index).bits);
      if (IsAtOrAbove(cut, key, index)) Collect(key, index);
    }
  }
  GroupMemoryBarrierWithGroupSync();
}

// Collects from k to c.most of the best items of the chunk for a sort; returns how many. If the first
// cut leaves too many, as it may if one share has most of the best, or is not worth it, another one is
// found digit by digit. Each round of the loop walks over the chunk, the last one to collect.
uint CollectBest(uint lane, Chunk chunk) {
  uint collected = c.most + 1;  // too many to have been stored
  if (c.leader_bits > 0) {
    CollectFromShares(lane, chunk);
    collected = shared_count;
    GroupMemoryBarrierWithGroupSync();
  }
  Cut cut = NoCut();
  Digit digit = {0, FIRST_SHIFT};
  uint above = 0;
  uint left = collected > c.most ? chunk.count : collected;
  [loop] while (collected > c.most) {
    bool collects = left <= c.most;
    // Both are cleared: Microsoft's compiler rejects the barriers if this depends on `collects`.
    [loop] for (uint i = lane; i < BINS; i += THREADS) HISTOGRAM(i) = 0;
    [loop] for (uint s = lane; s < SORT_CAPACITY; s += THREADS) sort_indices[s] = NO_INDEX;
    if (lane == 0) shared_count = 0;
    GroupMemoryBarrierWithGroupSync();
    Walk(lane, chunk, CUTS, cut, digit, collects);
    GroupMemoryBarrierWithGroupSync();
    if (collects) break;
    uint3 value = FindDigit(lane, c.ranks.k - above);
    left = above + value.y + value.z;
    cut = Deepen(cut, digit, value.x);
    digit = Next(digit);
    above += value.y;
  }
  return left;
}

[numthreads(THREADS, 1, 1)]
void SelectBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint flat = EnterGroup(group);
  if (flat >= c.groups.unit_count) return;
  uint sequence = flat / c.chunks;
  uint number = flat % c.chunks;
  uint begin = number * c.chunk_length;
  Chunk chunk = {FirstItem(sequence) + begin, min(c.chunk_length, c.items.length - begin)};
  uint left = CollectBest(lane, chunk);
  uint bits = SegmentBits(left);

#if RESULT == RESULT_RECORDS
  // The best k, in the order of their indices.
  uint kept = min(left, c.ranks.k);
  uint key_bits = left > kept ? bits : 0;
  SortSegments(lane, 1u << key_bits, key_bits);
  [loop] for (uint s = lane; s < 1u << bits; s += THREADS) {
    StoreSortKey(s, (BITS)0);
    if (s >= kept) sort_indices[s] = NO_INDEX;
  }
  SortSegments(lane, 1u << bits, bits);
  uint to = instance.write0 + c.first_record + sequence * c.record_stride + number * c.ranks.k;
  [loop] for (uint r = lane; r < kept; r += THREADS) {
    Records[to + r] = ToRecord(LoadItem(FirstItem(sequence), begin + sort_indices[r]));
  }
#else
  SortSegments(lane, 1u << bits, bits);
  Offsets at = KeptOffsets(sequence);
  [loop] for (uint r = lane; r < c.ranks.count; r += THREADS) {
    Candidate candidate = LoadItem(FirstItem(sequence), begin + sort_indices[c.ranks.first + r]);
    StoreResult(at.output, at.index, r, candidate);
  }
#endif
}
