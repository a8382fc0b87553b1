// The items of top_k's sequences: elements of the input, or records.
//   SOURCE  what t0 has: SOURCE_*
#include "include/top_k_records.hlsli"

#if SOURCE == SOURCE_ELEMENTS
#define LOADED uint4
#define LOADED_ITEMS VECTOR_ELEMENTS
#define ITEM_STRIDE c.items.stride
BITS BitsOf(LOADED loaded, uint at) { return ElementOf(loaded, at % VECTOR_ELEMENTS); }
#else
#define LOADED RECORD
#define LOADED_ITEMS 1
#define ITEM_STRIDE 1
BITS BitsOf(LOADED loaded, uint at) { return FromRecord(loaded).bits; }
#endif
Buffer<LOADED> Input : register(t0);

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
  uint at = first + index * c.items.stride;
  Candidate candidate;
  candidate.bits = ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
  candidate.position = c.items.first_position + index;
  return candidate;
#else
  return FromRecord(Input[first + index]);
#endif
}
