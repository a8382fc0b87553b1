// What a selection knows of each sequence, in words.
#ifndef OPMILL_TOP_K_HEADER_HLSLI_
#define OPMILL_TOP_K_HEADER_HLSLI_

#include "include/dispatch.hlsli"

#define COUNT_AT 0      // candidates
#define IS_TAKEN_AT 1   // 1: they are what TakeBest left
#define TAIL_AT 2       // the cut
#define KEY_AT 3        // and 4
#define IS_SPREAD_AT 5  // 1: SpreadCandidates has sorted them by places

#define HEADER_RECORDS (TOP_K_HEADER_WORDS / 4)

// Where the list of a sequence starts, in records of the selection in t1: headers, candidates, and what
// was taken of these.
uint ListOf(uint sequence, uint is_taken) {
  uint candidates = instance.read1 + c.sequences * HEADER_RECORDS;
  return is_taken != 0 ? candidates + c.sequences * c.candidate_stride + sequence * c.read_stride
                       : candidates + sequence * c.candidate_stride;
}

// Where the header of a sequence starts in u1, in words.
uint HeaderOf(uint sequence) { return instance.write1 + sequence * TOP_K_HEADER_WORDS; }

#endif  // OPMILL_TOP_K_HEADER_HLSLI_
