// What a selection knows of each sequence, in words.
#include "include/dispatch.hlsli"
#include "top_k_constants.h"

#define COUNT_AT 0      // candidates
#define IS_TAKEN_AT 1   // 1: they are what TakeBest left
#define TAIL_AT 2       // the cut
#define KEY_AT 3        // and 4
#define IS_SPREAD_AT 5  // 1: SpreadCandidates has sorted them by places

#define HEADER_RECORDS (TOP_K_HEADER_WORDS / 4)

// Where the header of a sequence starts in u1, in words.
uint HeaderOf(uint sequence) { return instance.write1 + sequence * TOP_K_HEADER_WORDS; }
