// Where results go: into the outputs, or as records into a list.
//   RESULT  top_k_constants.h
#if RESULT == RESULT_RECORDS
RWBuffer<RECORD> Records : register(u0);

#define RESULT_PLACE uint
uint PlaceOfResults(uint sequence, uint chunk) {
  return instance.write0 + c.first_record + sequence * c.record_stride + chunk * c.ranks.k;
}

void StoreRank(uint at, uint rank, Candidate candidate) { Records[at + rank] = RECORD_OF(candidate); }
#else
#include "include/top_k_outputs.hlsli"

#define RESULT_PLACE Offsets
Offsets PlaceOfResults(uint sequence, uint chunk) { return KeptOffsets(sequence); }

void StoreRank(Offsets at, uint rank, Candidate candidate) {
  StoreResult(at.output, at.index, rank, candidate);
}
#endif
