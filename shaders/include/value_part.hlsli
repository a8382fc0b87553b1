// Part of reduction.hlsli: a part that is one VALUE, of a word or, with IS_WIDE, of two. The
// including shader defines EMPTY_VALUE, ValueOf(BITS), JoinValues(VALUE, VALUE), and VALUE_OF_WORDS,
// which gives its words the type VALUE.
#define PART_WORDS (1 + IS_WIDE)
#include "include/reduction_words.hlsli"

struct Part {
  VALUE value;
};

Part EmptyPart() {
  Part p;
  p.value = EMPTY_VALUE;
  return p;
}

Part Join(Part a, Part b) {
  a.value = JoinValues(a.value, b.value);
  return a;
}

VALUE ValueInside(BITS bits, BOOLS inside) { return inside ? ValueOf(bits) : EMPTY_VALUE; }

// With JOINS_PAIRS, fewer additions of floats follow one another: each may lose half a unit in the last
// place. One after another needs fewer registers.
void Take(inout Part p, BITS b0, BITS b1, BITS b2, BITS b3, BOOLS in0, BOOLS in1, BOOLS in2,
          BOOLS in3, uint turn) {
#if JOINS_PAIRS
  VALUE first = JoinValues(ValueInside(b0, in0), ValueInside(b1, in1));
  VALUE second = JoinValues(ValueInside(b2, in2), ValueInside(b3, in3));
  p.value = JoinValues(p.value, JoinValues(first, second));
#else
  p.value = JoinValues(p.value, ValueInside(b0, in0));
  p.value = JoinValues(p.value, ValueInside(b1, in1));
  p.value = JoinValues(p.value, ValueInside(b2, in2));
  p.value = JoinValues(p.value, ValueInside(b3, in3));
#endif
}

Words WordsOf(Part p) {
  Words w = {asuint(p.value)};
  return w;
}

Part PartOfWords(Words w) {
  Part p = {VALUE_OF_WORDS(w)};
  return p;
}
