// What a selection knows of each sequence, in words.
#ifndef OPMILL_TOP_K_HEADER_HLSLI_
#define OPMILL_TOP_K_HEADER_HLSLI_

#include "include/dispatch.hlsli"

#define COUNT_AT 0      // candidates
#define IS_TAKEN_AT 1   // 1: they are what TakeBest left
#define TAIL_AT 2       // the cut
#define KEY_AT 3        // and 4
#define IS_SPREAD_AT 5  // 1: SpreadCandidates has sorted them by places

// Headers stand in u1.
uint HeaderOf(uint sequence) { return instance.write1 + sequence * TOP_K_HEADER_WORDS; }

#endif  // OPMILL_TOP_K_HEADER_HLSLI_
