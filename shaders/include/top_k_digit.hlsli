// The digit of a candidate that a radix sort looks at: of 8 bits, from bit c.shift of its key.

uint DigitOf(Candidate candidate) {
  BITS key = CandidateKeyOf(candidate.bits);
#if IS_WIDE
  uint word = c.shift < 32 ? key.x : key.y;
#else
  uint word = key;
#endif
  return (word >> (c.shift % 32)) & (TOP_K_DIGITS - 1);
}
