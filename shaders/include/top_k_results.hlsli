// top_k's results.
//   INDEX_WIDE  1 for 64-bit indices
#include "include/kept_dims.hlsli"
#include "include/top_k_elements.hlsli"
#include "include/top_k_key.hlsli"

RWBuffer<BITS> Values : register(u0);
#if INDEX_WIDE
RWBuffer<uint2> Indices : register(u1);
#else
RWBuffer<uint> Indices : register(u1);
#endif

// A rank of the sequence at `at`. Values are the elements' own bits.
void StoreResult(Offsets at, uint rank, BITS key, uint position) {
  uint value_at = c.outputs.values_base + at.output + rank * c.outputs.value_stride;
  // The element itself lies anywhere, and no cache may have it any more.
  BITS value = ElementOfKey(key);
  [branch] if (HidesElement(key)) {
    value = LoadElement(FirstElement(at.input), position - c.part.first_position);
  }
  Values[instance.write0 + value_at] = value;
  uint index_at = c.outputs.indices_base + at.index + rank * c.outputs.index_stride;
#if INDEX_WIDE
  Indices[instance.write1 + index_at] = uint2(position, 0);
#else
  Indices[instance.write1 + index_at] = position;
#endif
}
