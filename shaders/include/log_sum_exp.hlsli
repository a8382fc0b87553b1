// LOG_SUM_EXP: the largest element so far, and the sum of e^(x - largest). Elements come in groups:
// the sum is rescaled once a group, and the rest is one exponential an element.
#ifndef OPMILL_LOG_SUM_EXP_HLSLI_
#define OPMILL_LOG_SUM_EXP_HLSLI_

#include "include/float_math.hlsli"

// `largest` ignores NaN, which shows in the sum.
struct State {
  FLOATS largest;
  FLOATS sum;
};

State Identity() {
  State s;
  s.largest = (FLOATS)-FLOAT_INFINITY;
  s.sum = (FLOATS)0.0f;
  return s;
}

// `a`, which is no NaN, where `b` is one.
FLOATS Larger(FLOATS a, FLOATS b) { return b > a ? b : a; }

// What elements are compared to: finite, so that infinities need no case of their own.
FLOATS Reference(FLOATS largest) { return min(max(largest, -FLOAT_LARGEST), FLOAT_LARGEST); }

// One of +inf has 2, as good as any: the largest element is added to the sum's logarithm.
FLOATS ExpBeside(FLOATS x, FLOATS reference) { return ExpNotAbove(x - reference); }

FLOATS Rescaled(State s, FLOATS reference) {
  return s.sum * ExpBeside(Reference(s.largest), reference);
}

#if WIDTH == 1

#define GROUP 16  // elements

// Elements that do not count are -inf.
void TakeGroup(inout State s, float x[GROUP]) {
  float largest[4];
  float sums[4];
  uint i;
  [unroll] for (i = 0; i < 4; ++i) {
    largest[i] = Larger(Larger(Larger(Larger(s.largest, x[i]), x[i + 4]), x[i + 8]), x[i + 12]);
  }
  largest[0] = Larger(Larger(largest[0], largest[1]), Larger(largest[2], largest[3]));
  float reference = Reference(largest[0]);
  [unroll] for (i = 0; i < 4; ++i) {
    sums[i] = (ExpBeside(x[i], reference) + ExpBeside(x[i + 4], reference)) +
              (ExpBeside(x[i + 8], reference) + ExpBeside(x[i + 12], reference));
  }
  s.sum = Rescaled(s, reference) + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  s.largest = largest[0];
}

#endif

// Four elements of the same result. -inf counts for nothing.
void TakeFour(inout State s, FLOATS x0, FLOATS x1, FLOATS x2, FLOATS x3) {
  FLOATS largest = Larger(Larger(Larger(Larger(s.largest, x0), x1), x2), x3);
  FLOATS reference = Reference(largest);
  s.sum = Rescaled(s, reference) + ((ExpBeside(x0, reference) + ExpBeside(x1, reference)) +
                                    (ExpBeside(x2, reference) + ExpBeside(x3, reference)));
  s.largest = largest;
}

void TakeOne(inout State s, FLOATS x) {
  FLOATS largest = Larger(s.largest, x);
  FLOATS reference = Reference(largest);
  s.sum = Rescaled(s, reference) + ExpBeside(x, reference);
  s.largest = largest;
}

void Combine(inout State s, State other) {
  FLOATS largest = Larger(s.largest, other.largest);
  FLOATS reference = Reference(largest);
  s.sum = Rescaled(s, reference) + Rescaled(other, reference);
  s.largest = largest;
}

#define STATE_WORDS 2
UINTS FirstWord(State s) { return asuint(s.largest); }
UINTS SecondWord(State s) { return asuint(s.sum); }

State StateOf(UINTS first, UINTS second) {
  State s;
  s.largest = asfloat(first);
  s.sum = asfloat(second);
  return s;
}

FLOATS FinishFloat(State s) { return s.largest + Log(s.sum); }

#endif  // OPMILL_LOG_SUM_EXP_HLSLI_
