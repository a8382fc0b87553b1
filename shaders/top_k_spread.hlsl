// top_k for more ranks than a lane keeps: sorts what was selected by spreading it over places, so many
// that few candidates meet in one, and by counting there who comes before whom. Where many meet, the
// runs and merges of top_k.hlsl sort instead.
//   STORES_WORDS  how lists are written: records.hlsli
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKSpreadConstants
#include "include/candidate.hlsli"
#include "include/records.hlsli"
#include "include/top_k_lists.hlsli"
#include "include/top_k_work.hlsli"

// Records: SpreadCandidates: a selection; RankCandidates: what SpreadCandidates wrote.
Buffer<uint4> List : register(t1);

RWBuffer<WRITTEN_RECORD> Records : register(u0);
RWBuffer<uint> Headers : register(u1);

#define MOST_MEET 64  // in one place

// The digits of a key that tell candidates apart. Keys of narrow elements have theirs in the upper
// end, and one bit below by which NaN differs.
struct Scale {
  uint low;   // of all candidates
  uint bits;  // how many there are above it
  uint word;  // 64-bit keys: which word
};

// Of the positions of a sequence.
uint PositionBits() { return firstbithigh(max(c.length - 1, 1)) + 1; }

uint DigitsOf(BITS key, uint word) {
#if IS_WIDE
  return word != 0 ? key.y : key.x;
#elif VECTOR_ELEMENTS == 4
  return key;
#else
  return key >> ELEMENT_SHIFT << 1 | (key & 1);
#endif
}

// Early candidates have low places. Where keys are few, positions tell them apart as well.
uint PlaceOf(BITS key, uint position, Scale scale) {
  uint above = DigitsOf(key, scale.word) - scale.low;
  uint from_end;
  if (scale.bits >= c.place_bits) {
    from_end = above >> (scale.bits - c.place_bits);
  } else {
    uint bits = c.place_bits - scale.bits;
    uint position_bits = PositionBits();
    uint early = (1u << position_bits) - 1 - position;
    early = bits < position_bits ? early >> (position_bits - bits) : early << (bits - position_bits);
    // The lower word orders candidates before their positions do.
    from_end = above << bits | (scale.word != 0 ? 0 : early);
  }
  return (1u << c.place_bits) - 1 - from_end;
}

groupshared uint shared_places[TOP_K_MOST_PLACES];
groupshared uint shared_totals[THREADS];
groupshared uint shared_low[2];
groupshared uint shared_high[2];
groupshared uint shared_most;

Scale FindScale(uint lane, uint base, uint count) {
  uint2 low = (uint2)0xFFFFFFFFu;
  uint2 high = (uint2)0;
  [loop] for (uint i = lane; i < count; i += THREADS) {
    BITS key = RecordKey(List[base + i]);
    uint2 digits = uint2(DigitsOf(key, 0), DigitsOf(key, 1));
    low = min(low, digits);
    high = max(high, digits);
  }
  InterlockedMin(shared_low[0], low.x);
  InterlockedMax(shared_high[0], high.x);
#if IS_WIDE
  InterlockedMin(shared_low[1], low.y);
  InterlockedMax(shared_high[1], high.y);
#endif
  GroupMemoryBarrierWithGroupSync();
  Scale scale;
#if IS_WIDE
  scale.word = shared_low[1] != shared_high[1] ? 1 : 0;
#else
  scale.word = 0;
#endif
  scale.low = shared_low[scale.word];
  uint range = shared_high[scale.word] - scale.low;
  scale.bits = range != 0 ? firstbithigh(range) + 1 : 0;
  return scale;
}

// Every lane sums up so many places.
uint PlacesOfLane() { return ((1u << c.place_bits) + THREADS - 1) / THREADS; }

// Counts become starts among their lane's places, and totals those of the lanes' places.
void SumPlaces(uint lane) {
  uint first = lane * PlacesOfLane();
  uint end = min(first + PlacesOfLane(), 1u << c.place_bits);
  uint total = 0;
  uint most = 0;
  [loop] for (uint place = first; place < end; ++place) {
    uint count = shared_places[place];
    shared_places[place] = total;
    total += count;
    most = max(most, count);
  }
  shared_totals[lane] = total;
  InterlockedMax(shared_most, most);
  GroupMemoryBarrierWithGroupSync();
  uint before = 0;
  [loop] for (uint other = 0; other < lane; ++other) before += shared_totals[other];
  GroupMemoryBarrierWithGroupSync();
  shared_totals[lane] = before;
}

// One group a sequence: its candidates in the order of their places.
[numthreads(THREADS, 1, 1)]
void SpreadCandidates(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  bool is_real;
  uint sequence = EnterSequence(group, is_real);
  uint header = HeaderOf(sequence);
  uint count = Headers[header + COUNT_AT];
  uint base = ListOf(sequence, Headers[header + IS_TAKEN_AT]);

  [loop] for (uint i = lane; i < 1u << c.place_bits; i += THREADS) shared_places[i] = 0;
  if (lane < 2) {
    shared_low[lane] = 0xFFFFFFFFu;
    shared_high[lane] = 0;
  }
  if (lane == 0) shared_most = 0;
  GroupMemoryBarrierWithGroupSync();
  Scale scale = FindScale(lane, base, count);
  [loop] for (uint j = lane; j < count; j += THREADS) {
    uint4 record = List[base + j];
    InterlockedAdd(shared_places[PlaceOf(RecordKey(record), record.z, scale)], 1);
  }
  GroupMemoryBarrierWithGroupSync();
  SumPlaces(lane);
  GroupMemoryBarrierWithGroupSync();
  bool is_spread = shared_most <= MOST_MEET;
  [loop] for (uint k = lane; is_real && is_spread && k < count; k += THREADS) {
    uint4 record = List[base + k];
    uint place = PlaceOf(RecordKey(record), record.z, scale);
    uint at;
    InterlockedAdd(shared_places[place], 1, at);
    at += shared_totals[place / PlacesOfLane()];
    STORE_RECORD(Records, instance.write0, sequence * c.spread_stride + at,
                 uint4(record.xyz, place), CANDIDATE_WORDS | 8)
  }
  if (is_real && lane == 0) Headers[header + IS_SPREAD_AT] = is_spread ? 1 : 0;
}

bool ComesBefore(uint4 a, uint4 b) {
  return CandidateBefore(RecordKey(a), a.z, RecordKey(b), b.z);
}

// Of a candidate that is `item`-th by its place.
void RankCandidate(uint unit) {
  uint item = unit % c.spread_stride;
  uint sequence = unit / c.spread_stride;
  uint header = HeaderOf(sequence);
  uint count = Headers[header + IS_SPREAD_AT] != 0 ? Headers[header + COUNT_AT] : 0;
  if (item >= count) return;
  uint base = instance.read1 + sequence * c.spread_stride;
  uint4 record = List[base + item];
  uint rank = item;
  uint4 other = List[base + max(item, 1) - 1];
  [loop] for (uint left = item; left > 0 && other.w == record.w; --left) {
    rank -= ComesBefore(other, record) ? 0 : 1;
    other = List[base + max(left, 2) - 2];
  }
  other = List[base + min(item + 1, count - 1)];
  [loop] for (uint right = item + 1; right < count && other.w == record.w; ++right) {
    rank += ComesBefore(other, record) ? 1 : 0;
    other = List[base + min(right + 1, count - 1)];
  }
  if (rank < c.k) {
    STORE_RECORD(Records, instance.write0, sequence * c.k + rank, record,
                 CANDIDATE_WORDS)
  }
}

[numthreads(THREADS, 1, 1)]
void RankCandidates(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) RankCandidate(unit);
}
