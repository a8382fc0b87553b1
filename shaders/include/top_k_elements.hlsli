// The elements of top_k's sequences, by the layout of these.
#include "include/dispatch.hlsli"
#include "include/elements.hlsli"

Buffer<uint4> Input : register(t0);  // elements, or a selection's candidates

// The first element of a sequence in the view of the input, from its offset.
uint FirstElement(uint offset) {
  return instance.read0 * VECTOR_ELEMENTS + c.part.input_base + offset;
}

// Elements before it in its vector, which walks of rows by vectors read as well.
uint ElementsBefore(uint start) {
#if LAYOUT == LAYOUT_ROWS
  return start % VECTOR_ELEMENTS;
#else
  return 0;
#endif
}

// Element `local` of this dispatch's part of the sequence that starts at `start`.
BITS LoadElement(uint start, uint local) {
  uint at = start + local * c.part.element_stride;
  return ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
}
