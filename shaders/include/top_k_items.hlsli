// The items of top_k's sequences: elements of the input, or records.
//   SOURCE  what t0 has: SOURCE_*
#include "include/top_k_records.hlsli"

#if SOURCE == SOURCE_ELEMENTS
Buffer<uint4> Input : register(t0);
#else
Buffer<RECORD> Input : register(t0);
#endif

// The first item of a sequence in the view of t0.
uint FirstItem(uint sequence) {
#if SOURCE == SOURCE_ELEMENTS
  return instance.read0 * VECTOR_ELEMENTS + c.items.base + KeptOffsets(sequence).input;
#else
  return instance.read0 + c.items.base + sequence * c.items.stride;
#endif
}

// Item `index` of the sequence whose first one is at `first`.
Candidate LoadItem(uint first, uint index) {
#if SOURCE == SOURCE_ELEMENTS
  uint at = first + index;
  Candidate candidate;
  candidate.bits = ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
  candidate.position = c.items.first_position + index;
  return candidate;
#else
  return FromRecord(Input[first + index]);
#endif
}
