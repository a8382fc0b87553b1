// The ranks of many candidates: each goes into one of many buckets by its key, or by key and index if
// there are few keys. A bucket has few of them, which are compared with each other.

#define BUCKET_BITS (DIGIT_BITS - 1)
#define BUCKETS (1 << BUCKET_BITS)
#define LANE_CANDIDATES (SORT_CAPACITY / THREADS)
#define CROWD 64  // a candidate is not compared with more; a sort takes as long

groupshared uint bucket_begins[BUCKETS + 1];  // counts at first
groupshared uint best_key;
groupshared uint worst_key;
groupshared uint is_crowded;  // 1 if a bucket has too many

struct Buckets {
  uint best;
  uint dropped;  // low bits of a difference of keys
  uint spare;    // high bits of the index that stand below it
};

Buckets FindBuckets() {
  uint bits = firstbithigh(best_key - worst_key) + 1;
  uint kept = min(bits, BUCKET_BITS);
  Buckets buckets = {best_key, bits - kept, BUCKET_BITS - kept};
  return buckets;
}

// The first one is that of the best.
uint BucketOf(Buckets buckets, uint key, uint index) {
  uint below = (buckets.best - key) << buckets.spare;
  return (below | index >> (TOP_K_CHUNK_BITS - buckets.spare)) >> buckets.dropped;
}

// Brings the candidates of each bucket together, or sorts all of them if they crowd. All lanes call it,
// with equal arguments, after a barrier; it ends with one. Slots that have no candidate, up to the
// next power of two, have a key of 0 and NO_INDEX.
void RankCandidates(uint lane, uint count) {
  bucket_begins[2 * lane] = 0;
  bucket_begins[2 * lane + 1] = 0;
  if (lane == 0) {
    best_key = 0;
    worst_key = 0xFFFFFFFFu;
    is_crowded = 0;
  }
  GroupMemoryBarrierWithGroupSync();
  uint keys[LANE_CANDIDATES];
  uint indices[LANE_CANDIDATES];
  uint places[LANE_CANDIDATES];
  uint best = 0;
  uint worst = 0xFFFFFFFFu;
  [unroll] for (uint i = 0; i < LANE_CANDIDATES; ++i) {
    keys[i] = sort_keys[i * THREADS + lane];
    indices[i] = sort_indices[i * THREADS + lane];
    bool is_candidate = i * THREADS + lane < count;
    best = is_candidate ? max(best, keys[i]) : best;
    worst = is_candidate ? min(worst, keys[i]) : worst;
  }
  // Few lanes see that they have to change it.
  if (best > best_key) InterlockedMax(best_key, best);
  if (worst < worst_key) InterlockedMin(worst_key, worst);
  GroupMemoryBarrierWithGroupSync();
  Buckets buckets = FindBuckets();
  [unroll] for (uint n = 0; n < LANE_CANDIDATES; ++n) {
    places[n] = 0;
    if (n * THREADS + lane < count) {
      InterlockedAdd(bucket_begins[BucketOf(buckets, keys[n], indices[n])], 1, places[n]);
    }
    if (places[n] >= CROWD) is_crowded = 1;
  }
  GroupMemoryBarrierWithGroupSync();
  uint first_count = bucket_begins[2 * lane];
  uint begin = SumBefore(lane, first_count + bucket_begins[2 * lane + 1]);
  bucket_begins[2 * lane] = begin;
  bucket_begins[2 * lane + 1] = begin + first_count;
  if (lane == 0) bucket_begins[BUCKETS] = count;
  GroupMemoryBarrierWithGroupSync();
  [unroll] for (uint m = 0; m < LANE_CANDIDATES; ++m) {
    if (m * THREADS + lane < count) {
      uint to = bucket_begins[BucketOf(buckets, keys[m], indices[m])] + places[m];
      sort_keys[to] = keys[m];
      sort_indices[to] = indices[m];
    }
  }
  uint bits = is_crowded != 0 ? SegmentBits(count) : 0;
  SortSegments(lane, 1u << bits, bits);
}

uint RankOf(uint candidate) {
  uint key = sort_keys[candidate];
  uint index = sort_indices[candidate];
  uint bucket = BucketOf(FindBuckets(), key, index);
  uint rank = is_crowded != 0 ? candidate : bucket_begins[bucket];
  uint end = is_crowded != 0 ? candidate : bucket_begins[bucket + 1];
  [loop] for (uint other = rank; other < end; ++other) {
    rank += SORTS_BEFORE(sort_keys[other], sort_indices[other], key, index) ? 1 : 0;
  }
  return rank;
}
