// A cut through the candidates of top_k: what is above it, and what is at it. Found digit by digit, from
// the top: first those of the key, then those of the inverted index, so that the first of equal
// elements come first. Each digit is counted in a histogram in groupshared memory.
//   DIGIT_BITS  the bits of a digit

// The digits found so far, and the bits that they have.
struct Cut {
  BITS key;
  BITS key_mask;
  uint tail;
  uint tail_mask;
};

// Where the next digit is: `word` of key and tail, from the top; its lowest bit.
struct Digit {
  uint word;
  uint shift;
};

#define BINS (1 << DIGIT_BITS)
#define TAIL_WORD (IS_WIDE ? 2 : 1)
#define WORD_BITS (IS_WIDE ? 32 : ELEMENT_BITS)
#define FIRST_SHIFT (WORD_BITS > DIGIT_BITS ? WORD_BITS - DIGIT_BITS : 0)
#define TAIL_SHIFT (TOP_K_CHUNK_BITS - DIGIT_BITS)

Cut NoCut() {
  Cut cut;
  cut.key = (BITS)0;
  cut.key_mask = (BITS)0;
  cut.tail = 0xFFFFFFFFu << TOP_K_CHUNK_BITS;
  cut.tail_mask = cut.tail;
  return cut;
}

bool IsAt(Cut cut, BITS key, uint index) {
  return KeyEqual(key & cut.key_mask, cut.key) && (~index & cut.tail_mask) == cut.tail;
}

bool IsAtOrAbove(Cut cut, BITS key, uint index) {
  BITS high = key & cut.key_mask;
  return KeyAbove(high, cut.key) || (KeyEqual(high, cut.key) && (~index & cut.tail_mask) >= cut.tail);
}

// Of a candidate at the cut.
uint DigitOf(Cut cut, Digit digit, BITS key, uint index) {
  uint word = ~index & ~cut.tail_mask;
#if IS_WIDE
  if (digit.word < TAIL_WORD) word = digit.word == 0 ? key.y & ~cut.key_mask.y : key.x & ~cut.key_mask.x;
#else
  if (digit.word < TAIL_WORD) word = key & ~cut.key_mask;
#endif
  return word >> digit.shift;
}

// Moves the cut to this value of the digit.
Cut Deepen(Cut cut, Digit digit, uint value) {
  uint bits = value << digit.shift;
  uint mask = 0xFFFFFFFFu << digit.shift;
  if (digit.word == TAIL_WORD) {
    cut.tail |= bits;
    cut.tail_mask = mask;
  } else {
#if IS_WIDE
    if (digit.word == 0) {
      cut.key.y |= bits;
      cut.key_mask.y = mask;
    } else {
      cut.key.x |= bits;
      cut.key_mask.x = mask;
    }
#else
    cut.key |= bits;
    cut.key_mask = mask;
#endif
  }
  return cut;
}

Digit Next(Digit digit) {
  if (digit.shift > 0) {
    digit.shift = digit.shift > DIGIT_BITS ? digit.shift - DIGIT_BITS : 0;
  } else {
    ++digit.word;
    digit.shift = digit.word == TAIL_WORD ? TAIL_SHIFT : FIRST_SHIFT;
  }
  return digit;
}

groupshared uint found[3];  // the value of a digit, candidates above it, and at it

// Finds the value of a digit that leaves `wanted` candidates at or above it: its value, how many are
// above it, and how many at it. The counts of all values are in HISTOGRAM.
uint3 FindDigit(uint lane, uint wanted) {
  const uint lane_bins = BINS / THREADS;
  uint first = BINS - 1 - lane * lane_bins;  // and those below
  uint own = 0;
  [unroll] for (uint i = 0; i < lane_bins; ++i) own += HISTOGRAM(first - i);
  uint above = SumBefore(lane, own);
  if (above < wanted && above + own >= wanted) {
    uint bin = first;
    [loop] while (above + HISTOGRAM(bin) < wanted) {
      above += HISTOGRAM(bin);
      --bin;
    }
    found[0] = bin;
    found[1] = above;
    found[2] = HISTOGRAM(bin);
  }
  GroupMemoryBarrierWithGroupSync();
  return uint3(found[0], found[1], found[2]);
}
