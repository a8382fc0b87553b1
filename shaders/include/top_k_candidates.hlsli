// Candidates of top_k as lanes carry them, and their lists, which are records.
//   WRITES_RESULTS  0: kernels write lists as well
//   STORES_WORDS    then: how: records.hlsli
#include "include/candidate.hlsli"
#include "include/records.hlsli"
#include "include/top_k_header.hlsli"

Buffer<uint4> List : register(t1);

struct Candidate {
  BITS key;
  uint position;
};

Candidate NoCandidate() {
  Candidate candidate;
  candidate.key = (BITS)0;
  candidate.position = NOWHERE;
  return candidate;
}

Candidate FromRecord(uint4 record) {
  Candidate candidate;
  candidate.key = RecordKey(record);
  candidate.position = record.z;
  return candidate;
}

bool Before(Candidate a, Candidate b) {
  return CandidateBefore(a.key, a.position, b.key, b.position);
}

Candidate Choose(bool first, Candidate a, Candidate b) {
  Candidate chosen;
  chosen.key = first ? a.key : b.key;
  chosen.position = first ? a.position : b.position;
  return chosen;
}

#if !WRITES_RESULTS

RWBuffer<WRITTEN_RECORD> Records : register(u0);
// The headers of a selection; or, of columns' blocks, see top_k_blocks.hlsl.
RWBuffer<uint> Words : register(u1);

void StoreCandidate(uint at, Candidate candidate) {
  STORE_RECORD(Records, instance.write0, at, PackCandidate(candidate.key, candidate.position),
               CANDIDATE_WORDS)
}

// Candidates that are left to sort here: none where they have been spread.
uint CountOf(uint sequence) {
  uint at = HeaderOf(sequence);
  return Words[at + IS_SPREAD_AT] != 0 ? 0 : Words[at + COUNT_AT];
}

#endif
