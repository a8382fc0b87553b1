// LOG_SUM_EXP: the sum of e^(x - reference). The reference is one of the elements; no other element
// is more than HEADROOM above it. The sum is rescaled at most once for four elements.
#include "include/float_math.hlsli"

// `reference` is finite. Infinities therefore need no special case: +inf adds inf to the sum, -inf
// adds nothing. A NaN makes the sum NaN.
#define FIRST reference
#define SECOND sum
#include "include/pair_part.hlsli"

Part EmptyPart() {
  Part p = {(FLOATS)-FLOAT_LARGEST, (FLOATS)0.0f};
  return p;
}

// `a` if `b` is NaN. `a` must not be NaN.
FLOATS Larger(FLOATS a, FLOATS b) { return b > a ? b : a; }

// How far elements may be above the reference. A larger value would cost accuracy: the logarithm of
// a large sum loses bits.
#define HEADROOM 2.0f

void Take(inout Part p, UINTS b0, UINTS b1, UINTS b2, UINTS b3, BOOLS in0, BOOLS in1, BOOLS in2,
          BOOLS in3, uint turn) {
  FLOATS x0 = in0 ? FloatOf(b0) : (FLOATS)-FLOAT_INFINITY;
  FLOATS x1 = in1 ? FloatOf(b1) : (FLOATS)-FLOAT_INFINITY;
  FLOATS x2 = in2 ? FloatOf(b2) : (FLOATS)-FLOAT_INFINITY;
  FLOATS x3 = in3 ? FloatOf(b3) : (FLOATS)-FLOAT_INFINITY;
  FLOATS largest = Larger(Larger(Larger(Larger(p.reference, x0), x1), x2), x3);
  BOOLS above = largest - HEADROOM > p.reference;
  [branch] if (any(above)) {
    FLOATS reference = above ? min(largest, FLOAT_LARGEST) : p.reference;
    p.sum *= Exp(p.reference - reference);
    p.reference = reference;
  }
  p.sum += (Exp(x0 - p.reference) + Exp(x1 - p.reference)) +
           (Exp(x2 - p.reference) + Exp(x3 - p.reference));
}

Part Join(Part a, Part b) {
  FLOATS reference = Larger(a.reference, b.reference);
  a.sum = a.sum * Exp(a.reference - reference) + b.sum * Exp(b.reference - reference);
  a.reference = reference;
  return a;
}

// If all elements were -inf, the sum consists of what some drivers give for exp2(-inf): 2^-127.
FLOATS FinishFloat(Part p) {
  FLOATS sum = p.sum < 1e-20f ? (FLOATS)0.0f : p.sum;
  return p.reference + Log(sum);
}
