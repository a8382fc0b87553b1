// The two outputs of top_k.
//   RESULT  RESULT_INDICES or RESULT_WIDE_INDICES

RWBuffer<BITS> Values : register(u0);
#if RESULT == RESULT_WIDE_INDICES
RWBuffer<uint2> Indices : register(u1);
#define INDEX_OF(position) uint2(position, 0)
#else
RWBuffer<uint> Indices : register(u1);
#define INDEX_OF(position) (position)
#endif

// `value_at` and `index_at`: where the sequence's rank 0 is, from the bases. `rank` counts from the
// first one of the view.
void StoreResult(uint value_at, uint index_at, uint rank, Candidate candidate) {
  Values[instance.write0 + c.outputs.values_base + value_at + rank * c.outputs.value_stride] =
      candidate.bits;
  Indices[instance.write1 + c.outputs.indices_base + index_at + rank * c.outputs.index_stride] =
      INDEX_OF(candidate.position);
}
