// The ranks of candidates, by sorting them.

// All lanes call it, with equal arguments, after a barrier; it ends with one. Slots that have no
// candidate, up to the next power of two, have a key of 0 and NO_INDEX.
void RankCandidates(uint lane, uint count) {
  uint bits = SegmentBits(count);
  SortSegments(lane, 1u << bits, bits);
}

uint RankOf(uint candidate) { return candidate; }
