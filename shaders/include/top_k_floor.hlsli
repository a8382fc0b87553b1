// A floor for the k best items of a chunk: at least k are at or above it, seldom many more. Some items
// are leaders: the best of each lane, or of each of its vectors. Some leaders are pivots. The floor
// is the best pivot that at least k leaders reach. Barriers separate the steps.

#define PIVOTS 32
#define PIVOT_LANES (THREADS / PIVOTS)
#define NO_PIVOT 0xFFFFFFFFu

groupshared BITS pivots[PIVOTS];
groupshared uint pivot_counts[PIVOTS];  // leaders that reach it
groupshared uint best_pivot;            // its count * PIVOTS + its number

// Leaders take the memory of a later sort.
void StoreLeaders(uint lane, Bests bests) {
  if (!IS_WIDE && c.leaders > THREADS) {  // there is no room for more wide ones
    sort_keys[lane] = bests.v0;
    sort_keys[THREADS + lane] = bests.v1;
    sort_keys[2 * THREADS + lane] = bests.v2;
    sort_keys[3 * THREADS + lane] = bests.v3;
  } else {
    sort_keys[lane] = Better(Better(bests.v0, bests.v1), Better(bests.v2, bests.v3));
  }
  if (lane < PIVOTS) pivot_counts[lane] = 0;
  if (lane == 0) best_pivot = NO_PIVOT;
}

// As many leaders as there are pivots for each lane, which has one of the pivots.
void CountLeaders(uint lane) {
  uint number = lane % PIVOTS;
  BITS pivot = sort_keys[number * PIVOT_LANES + number % PIVOT_LANES];
  uint count = 0;
  [loop] for (uint first = lane - number; first < c.leaders; first += THREADS) {
    [unroll] for (uint l = 0; l < PIVOTS; ++l) count += KeyAbove(pivot, sort_keys[first + l]) ? 0 : 1;
  }
  InterlockedAdd(pivot_counts[number], count);
  if (lane < PIVOTS) pivots[lane] = pivot;
}

// Equal pivots have equal counts.
void ChoosePivot(uint lane) {
  if (lane < PIVOTS) {
    uint count = pivot_counts[lane];
    if (count >= c.ranks.k) InterlockedMin(best_pivot, count * PIVOTS + lane);
  }
}

// 0 if there are fewer than k leaders at or above every pivot.
BITS Floor() { return best_pivot == NO_PIVOT ? (BITS)0 : pivots[best_pivot % PIVOTS]; }
