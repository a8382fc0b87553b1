// The keys of a chunk of top_k's items, in registers: each lane has four vectors. Packed as the
// elements were, one key to each word for records.
#if SOURCE == SOURCE_RECORDS
#define VECTOR_KEYS (IS_WIDE ? 2 : 4)
#else
#define VECTOR_KEYS VECTOR_ELEMENTS
#endif
#define KEY_BITS (128 / VECTOR_KEYS)

struct Chunk {
  uint first;  // the first item, in the view of t0
  uint count;  // items
};

struct Keys {
  uint4 v0;
  uint4 v1;
  uint4 v2;
  uint4 v3;
};

// Vectors of elements begin where those of the view do; the first one of a chunk may begin before it.
#if SOURCE == SOURCE_RECORDS
uint Skipped(Chunk chunk) { return 0; }
#else
uint Skipped(Chunk chunk) { return chunk.first % VECTOR_KEYS; }
#endif

// The index in the chunk of a vector's first key. Indices before the chunk are above its count.
uint IndexOf(Chunk chunk, uint lane, uint number) {
  return (number * THREADS + lane) * VECTOR_KEYS - Skipped(chunk);
}

#if SOURCE == SOURCE_RECORDS
BITS RecordBits(Chunk chunk, uint index) {
  return FromRecord(Input[chunk.first + min(index, chunk.count - 1)]).bits;
}

uint4 LoadVector(Chunk chunk, uint lane, uint number) {
  uint index = IndexOf(chunk, lane, number);
#if IS_WIDE
  return uint4(RecordBits(chunk, index), RecordBits(chunk, index + 1));
#else
  return uint4(RecordBits(chunk, index), RecordBits(chunk, index + 1), RecordBits(chunk, index + 2),
               RecordBits(chunk, index + 3));
#endif
}
#else
uint4 LoadVector(Chunk chunk, uint lane, uint number) {
  uint last = (Skipped(chunk) + chunk.count - 1) / VECTOR_KEYS;
  return Input[chunk.first / VECTOR_KEYS + min(number * THREADS + lane, last)];
}
#endif

// One key of a vector.
BITS KeyOf(uint4 v, uint e) {
#if IS_WIDE
  return e == 0 ? v.xy : v.zw;
#else
  return (v[e * 4 / VECTOR_KEYS] >> (e * KEY_BITS % 32)) & ELEMENT_MASK;
#endif
}

// The lowest `count` of 128 bits.
uint4 LowBits(int count) {
  int4 bits = clamp(count - int4(0, 32, 64, 96), 0, 32);
  return bits == 32 ? 0xFFFFFFFFu : (1u << bits) - 1;
}

// The keys of a loaded vector; 0 for what is not in the chunk.
uint4 KeysOf(uint4 v, Chunk chunk, uint lane, uint number) {
#if IS_WIDE
  uint4 keys = uint4(CandidateKeyOf(v.xy), CandidateKeyOf(v.zw));
#elif !IS_FLOAT && SOURCE == SOURCE_ELEMENTS
  uint4 keys = v ^ (IS_SIGNED_INT ? SIGN_BIT * (0xFFFFFFFFu / ELEMENT_MASK) : 0);
#if !LARGEST
  keys = ~keys;
#endif
#else
  uint4 keys = 0;
  [unroll] for (uint e = 0; e < VECTOR_KEYS; ++e) {
    keys[e * 4 / VECTOR_KEYS] |= CandidateKeyOf(KeyOf(v, e)) << (e * KEY_BITS % 32);
  }
#endif
  int index = IndexOf(chunk, lane, number);
  int count = chunk.count;
  [branch] if (index < 0 || index + VECTOR_KEYS > count) {
    keys &= LowBits((count - index) * KEY_BITS) & ~LowBits(-index * KEY_BITS);
  }
  return keys;
}

Keys LoadKeys(uint lane, Chunk chunk) {
  Keys keys;
  keys.v0 = LoadVector(chunk, lane, 0);
  keys.v1 = LoadVector(chunk, lane, 1);
  keys.v2 = LoadVector(chunk, lane, 2);
  keys.v3 = LoadVector(chunk, lane, 3);
  keys.v0 = KeysOf(keys.v0, chunk, lane, 0);
  keys.v1 = KeysOf(keys.v1, chunk, lane, 1);
  keys.v2 = KeysOf(keys.v2, chunk, lane, 2);
  keys.v3 = KeysOf(keys.v3, chunk, lane, 3);
  return keys;
}

// For loops over the keys of a vector.
#if VECTOR_KEYS == 16
#define EACH_KEY [loop]  // the code for all would not fit into instruction caches
#define EACH_KEY_OF ElementOf
#else
#define EACH_KEY [unroll]
#define EACH_KEY_OF KeyOf
#endif

// For loops over the vectors, whose code for one serves all.
#define VECTORS (TOP_K_LANE_VECTORS + c.groups.zero)
uint4 VectorOf(Keys keys, uint number) {
  uint4 low = (number & 1) != 0 ? keys.v1 : keys.v0;
  uint4 high = (number & 1) != 0 ? keys.v3 : keys.v2;
  return (number & 2) != 0 ? high : low;
}

BITS Better(BITS a, BITS b) {
#if IS_WIDE
  return KeyAbove(a, b) ? a : b;
#else
  return max(a, b);
#endif
}

BITS BestOf(uint4 v) {
  BITS best = KeyOf(v, 0);
  [unroll] for (uint e = 1; e < VECTOR_KEYS; ++e) best = Better(best, KeyOf(v, e));
  return best;
}

// The best key of each vector.
struct Bests {
  BITS v0;
  BITS v1;
  BITS v2;
  BITS v3;
};

Bests BestsOf(Keys keys) {
  Bests bests = {BestOf(keys.v0), BestOf(keys.v1), BestOf(keys.v2), BestOf(keys.v3)};
  return bests;
}
