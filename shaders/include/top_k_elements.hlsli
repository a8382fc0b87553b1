// The elements of top_k's sequences, by the layout of these.
#ifndef OPMILL_TOP_K_ELEMENTS_HLSLI_
#define OPMILL_TOP_K_ELEMENTS_HLSLI_

#include "include/top_k_layout.hlsli"

Buffer<uint4> Input : register(t0);  // elements, or a selection's candidates

// Element `local` of this dispatch's part of the sequence that starts at `start`.
BITS LoadElement(uint start, uint local) {
  uint at = start + local * c.reduced[0].input_stride;
  return ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
}

#endif  // OPMILL_TOP_K_ELEMENTS_HLSLI_
