// LOG_SUM_EXP: the largest element so far, and the sum of e^(x - largest). Elements come in groups:
// the sum is rescaled once a group, and the rest is one exponential an element.
#ifndef OPMILL_LOG_SUM_EXP_HLSLI_
#define OPMILL_LOG_SUM_EXP_HLSLI_

#include "include/float_math.hlsli"

// `largest` ignores NaN, which shows in the sum; once it is +inf the sum is 1, or NaN.
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

// What elements are compared to, so that infinities need no case of their own.
FLOATS Reference(FLOATS largest) { return max(largest, -FLOAT_LARGEST); }

// NaN when x is, else 0.
FLOATS NanOrZero(FLOATS x) { return IsNanFloat(x) ? x : (FLOATS)0.0f; }

#if WIDTH == 1

#define GROUP 16  // elements

float LargestOf8(float x[GROUP], uint i) {
  return max(max(max(x[i], x[i + 1]), max(x[i + 2], x[i + 3])),
             max(max(x[i + 4], x[i + 5]), max(x[i + 6], x[i + 7])));
}

// Elements that do not count are -inf.
void TakeGroup(inout State s, float x[GROUP]) {
  float largest = max(s.largest, max(LargestOf8(x, 0), LargestOf8(x, 8)));
  float reference = Reference(largest);
  float sums[4];
  [branch] if (largest == FLOAT_INFINITY) {
    [unroll] for (uint i = 0; i < 4; ++i) {
      sums[i] = NanOrZero(x[i]) + NanOrZero(x[i + 4]) + NanOrZero(x[i + 8]) + NanOrZero(x[i + 12]);
    }
    s.sum = IsNanFloat(s.sum) ? s.sum : 1.0f;
  } else {
    [unroll] for (uint i = 0; i < 4; ++i) {
      sums[i] = (ExpNotAbove(x[i] - reference) + ExpNotAbove(x[i + 4] - reference)) +
                (ExpNotAbove(x[i + 8] - reference) + ExpNotAbove(x[i + 12] - reference));
    }
    s.sum *= ExpNotAbove(Reference(s.largest) - reference);
  }
  s.sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
  s.largest = largest;
}

#endif

// e^(x - largest), whatever infinities: the largest has 1, also where it is +inf.
FLOATS ExpBeside(FLOATS x, FLOATS largest) {
  FLOATS below = x - Reference(largest);
  return x == largest ? (FLOATS)1.0f : ExpNotAbove(below);
}

// Four elements of the same result. -inf counts for nothing.
void TakeFour(inout State s, FLOATS x0, FLOATS x1, FLOATS x2, FLOATS x3) {
  FLOATS largest = max(s.largest, max(max(x0, x1), max(x2, x3)));
  s.sum = s.sum * ExpBeside(s.largest, largest) +
          ((ExpBeside(x0, largest) + ExpBeside(x1, largest)) +
           (ExpBeside(x2, largest) + ExpBeside(x3, largest)));
  s.largest = largest;
}

void TakeOne(inout State s, FLOATS x) {
  FLOATS largest = max(s.largest, x);
  s.sum = s.sum * ExpBeside(s.largest, largest) + ExpBeside(x, largest);
  s.largest = largest;
}

void Combine(inout State s, State other) {
  FLOATS largest = max(s.largest, other.largest);
  FLOATS reference = Reference(largest);
  // Infinite: sums of 1, or NaN.
  BOOLS infinite = largest == FLOAT_INFINITY;
  FLOATS a = s.sum * ExpNotAbove(Reference(s.largest) - reference);
  FLOATS b = other.sum * ExpNotAbove(Reference(other.largest) - reference);
  FLOATS nan = NanOrZero(s.sum) + NanOrZero(other.sum);
  s.sum = infinite ? 1.0f + nan : a + b;
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
