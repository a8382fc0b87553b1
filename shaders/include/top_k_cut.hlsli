// A cut through the candidates of top_k: what is above it, and what is at it. Found digit by digit, from
// the top: first those of the key, then those of the inverted index, so that the first of equal
// elements come first. Each digit is counted in a histogram in groupshared memory.
//   DIGIT_BITS  the bits of a digit

// The order of a candidate: the words of its key, from the top, and the inverted index.
#if IS_WIDE
#define ORDER uint3
#define WORD_NUMBERS uint3(0, 1, 2)
#define TAIL_WORD 2
ORDER OrderOf(BITS key, uint index) { return uint3(key.y, key.x, ~index); }
#else
#define ORDER uint2
#define WORD_NUMBERS uint2(0, 1)
#define TAIL_WORD 1
ORDER OrderOf(BITS key, uint index) { return uint2(key, ~index); }
#endif

// The digits found so far, and the bits that they have.
struct Cut {
  ORDER digits;
  ORDER mask;
};

// Where the next digit is: its word, and its lowest bit.
struct Digit {
  uint word;
  uint shift;
};

#define BINS (1 << DIGIT_BITS)  // of HISTOGRAM
#define WORD_BITS (IS_WIDE ? 32 : ELEMENT_BITS)
#define FIRST_SHIFT (WORD_BITS > DIGIT_BITS ? WORD_BITS - DIGIT_BITS : 0)
#define TAIL_SHIFT (TOP_K_CHUNK_BITS - DIGIT_BITS)

Cut NoCut() {
  Cut cut;
  cut.mask = WORD_NUMBERS == TAIL_WORD ? (ORDER)(0xFFFFFFFFu << TOP_K_CHUNK_BITS) : (ORDER)0;
  cut.digits = cut.mask;
  return cut;
}

bool IsAt(Cut cut, ORDER order) { return all((order & cut.mask) == cut.digits); }

bool IsAtOrAbove(Cut cut, ORDER order) {
  order &= cut.mask;
  bool result = true;
  [unroll] for (int w = TAIL_WORD; w >= 0; --w) {
    result = order[w] > cut.digits[w] || (order[w] == cut.digits[w] && result);
  }
  return result;
}

// Of a candidate at the cut.
uint DigitOf(Cut cut, Digit digit, ORDER order) {
  order = digit.word == WORD_NUMBERS ? order & ~cut.mask : (ORDER)0;
  uint word = order[0];
  [unroll] for (uint w = 1; w <= TAIL_WORD; ++w) word |= order[w];
  return word >> digit.shift;
}

// Moves the cut to this value of the digit.
Cut Deepen(Cut cut, Digit digit, uint value) {
  cut.digits |= digit.word == WORD_NUMBERS ? (ORDER)(value << digit.shift) : (ORDER)0;
  cut.mask = digit.word == WORD_NUMBERS ? (ORDER)(0xFFFFFFFFu << digit.shift) : cut.mask;
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
  [unroll] for (uint i = 0; i < lane_bins; ++i) own += HISTOGRAM[first - i];
  uint above = SumBefore(lane, own);
  if (above < wanted && above + own >= wanted) {
    uint bin = first;
    [loop] while (above + HISTOGRAM[bin] < wanted) {
      above += HISTOGRAM[bin];
      --bin;
    }
    found[0] = bin;
    found[1] = above;
    found[2] = HISTOGRAM[bin];
  }
  GroupMemoryBarrierWithGroupSync();
  return uint3(found[0], found[1], found[2]);
}
