// Records of top_k: an element's own bits and its position, from one pass for another.
//   LARGEST  1 if the largest element comes first
#include "include/kept_dims.hlsli"
#define NAN_FIRST 0
#include "include/candidate.hlsli"

struct Candidate {
  BITS bits;
  uint position;
};

#if IS_WIDE
#define RECORD uint4
#define RECORD_OF(candidate) uint4(candidate.bits, candidate.position, 0)
#define RECORD_BITS xy
#define RECORD_POSITION z
#else
#define RECORD uint2
#define RECORD_OF(candidate) uint2(candidate.bits, candidate.position)
#define RECORD_BITS x
#define RECORD_POSITION y
#endif

Candidate FromRecord(RECORD record) {
  Candidate candidate = {record.RECORD_BITS, record.RECORD_POSITION};
  return candidate;
}
