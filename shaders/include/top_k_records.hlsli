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
#define KEY_WORDS 2
#define CAPACITY TOP_K_WIDE_CAPACITY
#define RECORD uint4
RECORD ToRecord(Candidate candidate) { return uint4(candidate.bits, candidate.position, 0); }
#else
#define KEY_WORDS 1
#define CAPACITY TOP_K_NARROW_CAPACITY
#define RECORD uint2
RECORD ToRecord(Candidate candidate) { return uint2(candidate.bits, candidate.position); }
#endif

Candidate FromRecord(RECORD record) {
  Candidate candidate;
#if IS_WIDE
  candidate.bits = record.xy;
  candidate.position = record.z;
#else
  candidate.bits = record.x;
  candidate.position = record.y;
#endif
  return candidate;
}
