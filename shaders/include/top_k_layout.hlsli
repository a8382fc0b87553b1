// How top_k's sequences lie in memory (Layout of kernels/operators/top_k/top_k_slice.h).
#include "include/dispatch.hlsli"
#include "include/elements.hlsli"

#define LAYOUT_ROWS 0     // the elements of a sequence are neighbours
#define LAYOUT_COLUMNS 1  // sequences are neighbours, and every row of them starts a vector
#define LAYOUT_STRIDED 2  // anything else

// The first element of a sequence in the view of the input, from its offset.
uint FirstElement(uint offset) { return instance.read0 * VECTOR_ELEMENTS + c.input_base + offset; }

// Elements before it in its vector, which whoever walks rows by vectors reads as well.
uint ElementsBefore(uint start) {
#if LAYOUT == LAYOUT_ROWS
  return start % VECTOR_ELEMENTS;
#else
  return 0;
#endif
}
