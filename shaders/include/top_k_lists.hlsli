// The lists of a selection.
#include "include/top_k_header.hlsli"

// Where the list of a sequence starts, in records of the selection in t1: headers, candidates, and what
// was taken of these.
uint ListOf(uint sequence, uint is_taken) {
  uint candidates = instance.read1 + c.sequences * HEADER_RECORDS;
  return is_taken != 0 ? candidates + c.sequences * c.candidate_stride + sequence * c.taken_stride
                       : candidates + sequence * c.candidate_stride;
}
