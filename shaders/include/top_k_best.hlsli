// Where the best of a chunk go: into the outputs, or as records into a list.
//   RESULT  top_k_constants.h
#if RESULT == RESULT_RECORDS
RWBuffer<RECORD> Records : register(u0);

#define BEST_PLACE uint
uint PlaceOfBest(uint sequence, uint chunk) {
  return instance.write0 + c.first_record + sequence * c.record_stride + chunk * c.ranks.k;
}

void StoreBest(uint at, uint rank, Candidate candidate) { Records[at + rank] = ToRecord(candidate); }
#else
#include "include/top_k_outputs.hlsli"

#define BEST_PLACE Offsets
Offsets PlaceOfBest(uint sequence, uint chunk) { return KeptOffsets(sequence); }

void StoreBest(Offsets at, uint rank, Candidate candidate) {
  StoreResult(at.output, at.index, rank, candidate);
}
#endif
