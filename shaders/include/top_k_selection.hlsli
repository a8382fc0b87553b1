// What top_k's selections leave: cuts in headers, and candidates, of which a sequence's lie in one list.
//   ALONE         1 where lanes have sequences of their own, and leave candidates in their order, in
//                 quads for top_k_rank.hlsl; 0 where many lanes share one, and leave them in any order,
//                 in records for top_k_spread.hlsl
//   STORES_WORDS  shared sequences: how candidates are written: records.hlsli
#include "include/candidate.hlsli"
#include "include/records.hlsli"
#include "include/top_k_header.hlsli"
#include "include/top_k_quads.hlsli"

// Of each sequence: candidates.
#if ALONE
RWBuffer<uint> Quads : register(u0);  // word by word
#else
RWBuffer<WRITTEN_RECORD> Records : register(u0);
#endif
RWBuffer<uint> Headers : register(u1);

// Key and inverted position are one long number that orders candidates: no two are equal, and the
// larger comes first.
struct Cut {
  BITS key;
  uint tail;
};

bool IsAbove(BITS key, uint position, Cut cut) {
  return KeyAbove(key, cut.key) || (KeyEqual(key, cut.key) && ~position >= cut.tail);
}

#if ALONE

// Candidate `place` of the list that starts at record `list`.
void StoreCandidate(uint list, uint place, BITS key, uint position) {
  uint at = instance.write0 + (list + place / 4 * QUAD_RECORDS) * 4 + place % 4;
#if IS_WIDE
  Quads[at] = key.x;
  Quads[at + 4] = key.y;
#else
  Quads[at] = key;
#endif
  Quads[at + QUAD_RECORDS * 4 - 4] = position;
}

#else

void StoreCandidate(uint list, uint place, BITS key, uint position) {
  STORE_RECORD(Records, instance.write0, list + place, PackCandidate(key, position),
               CANDIDATE_WORDS)
}

#endif
