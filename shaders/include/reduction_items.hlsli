// Part of reduction.hlsli: where an item is, its vector, and the elements of that vector.

// The offset of position `flat` (row-major) of the reduced dimensions, or of those outside of a
// run.
uint ReducedOffset(uint flat) {
#if DIMS == 0
  return flat * c.reduced[0].input_stride;
#else
  uint offset = 0;
  uint rest = flat;
  for (uint d = c.reduced_rank; d > 1; --d) {
    uint size = c.reduced[d - 1].size;
    offset += (rest % size) * c.reduced[d - 1].input_stride;
    rest /= size;
  }
  return offset + rest * c.reduced[0].input_stride;
#endif
}

// Lanes walk backwards: the end of a tensor is still in the cache after its upload.
uint ItemOf(uint turn) { return c.item_count - 1 - turn; }

// Where slot 0 of an item is: in the view, and in rows also in its run. The latter wraps below zero
// if the vector begins before the run, so that one comparison decides which slots are inside.
struct Place {
  uint at;
  uint in_run;
};

Place FindItem(uint base, uint turn) {
  Place place;
  uint item = ItemOf(turn);
#if !IS_ROW
  place.at = base + ReducedOffset(item);
  place.in_run = 0;
#else
#if DIMS == 0
  uint start = base;
  uint vector_in_run = item;
#else
  uint run = item / c.run_vectors;
  uint start = base + ReducedOffset(run);
  uint vector_in_run = item - run * c.run_vectors;
#endif
  place.in_run = vector_in_run * VECTOR_ELEMENTS - start % VECTOR_ELEMENTS;
  place.at = start + place.in_run;
#endif
  return place;
}

// The 16 bytes that start at element `at`, which need not be aligned.
uint4 LoadShifted(uint at) {
  uint index = at / VECTOR_ELEMENTS;
  uint4 a = Input[index];
  uint4 b = Input[min(index + 1, instance.read0 + c.last_vector)];
  uint bit = (at % VECTOR_ELEMENTS) * ELEMENT_BITS;
  bool two = (bit & 64) != 0;
  bool one = (bit & 32) != 0;
  a = two ? uint4(a.zw, b.xy) : a;
  b.xy = two ? b.zw : b.xy;
  uint4 next = uint4(a.yzw, b.x);
  b.x = one ? b.y : b.x;
  a = one ? next : a;
#if VECTOR_ELEMENTS > 4
  next = uint4(a.yzw, b.x);
  // In two steps, because a shift by 32 has no effect.
  uint shift = bit & 31;
  a = (a >> shift) | ((next << 1) << (31 - shift));
#endif
  return a;
}

uint4 LoadItem(Place place) {
#if LOAD == LOAD_COLUMN_SHIFTED
  return LoadShifted(place.at);
#elif LOAD == LOAD_ROW_SHIFTED
  return Input[min(place.at / VECTOR_ELEMENTS, instance.read0 + c.last_vector)];
#else
  return Input[place.at / VECTOR_ELEMENTS];
#endif
}

// The elements of one set of an item, one of each word of the vector.
BITS SetElements(uint4 v, Place place, uint set) {
#if LOAD == LOAD_SCALAR
  BITS bits = ElementOf(v, place.at % VECTOR_ELEMENTS);
#if HIGH_ELEMENTS
  bits <<= ELEMENT_SHIFT;
#endif
  return bits;
#elif IS_WIDE
  return uint2(v[2 * set], v[2 * set + 1]);
#elif HIGH_ELEMENTS
  return v << (ELEMENT_SHIFT - set * ELEMENT_BITS);
#else
  return (v >> (set * ELEMENT_BITS)) & ELEMENT_MASK;
#endif
}

// The slot that component `i` of a set stands for.
#define SLOT_OF(set, i) ((i) * SETS + (set))

// Which elements of a set count. `before_end`: whether the item exists.
BOOLS Inside(bool before_end, Place place, uint set) {
#if LOAD == LOAD_ROW_SHIFTED
  return before_end && place.in_run + SLOT_OF((UINTS)set, COMPONENTS) < c.run_length;
#else
  return (BOOLS)before_end;
#endif
}
