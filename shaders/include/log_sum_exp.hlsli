// LOG_SUM_EXP: the largest element so far, and the sum of e^(x - largest). Elements come in groups:
// the sum is rescaled once a group, and the rest is one exponential an element.
#ifndef OPMILL_LOG_SUM_EXP_HLSLI_
#define OPMILL_LOG_SUM_EXP_HLSLI_

#include "include/float_math.hlsli"

// `largest` ignores NaN, which shows in the sum; once it is +inf the sum is 1, or NaN.
struct State {
  float largest;
  float sum;
};

State Identity() {
  State s;
  s.largest = -FLOAT_INFINITY;
  s.sum = 0.0f;
  return s;
}

// What elements are compared to, so that infinities need no case of their own.
float Reference(float largest) { return max(largest, -FLOAT_LARGEST); }

#define GROUP 16  // elements

float LargestOf8(float x[GROUP], uint i) {
  return max(max(max(x[i], x[i + 1]), max(x[i + 2], x[i + 3])),
             max(max(x[i + 4], x[i + 5]), max(x[i + 6], x[i + 7])));
}

// NaN when x is, else 0.
float NanOrZero(float x) { return IsNanFloat(x) ? x : 0.0f; }

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

void Combine(inout State s, State other) {
  float largest = max(s.largest, other.largest);
  float reference = Reference(largest);
  // Infinite: sums of 1, or NaN.
  bool infinite = largest == FLOAT_INFINITY;
  float a = s.sum * ExpNotAbove(Reference(s.largest) - reference);
  float b = other.sum * ExpNotAbove(Reference(other.largest) - reference);
  float nan = NanOrZero(s.sum) + NanOrZero(other.sum);
  s.sum = infinite ? 1.0f + nan : a + b;
  s.largest = largest;
}

uint4 Pack(State s) { return uint4(asuint(s.largest), asuint(s.sum), 0, 0); }

State Unpack(uint4 record) {
  State s;
  s.largest = asfloat(record.x);
  s.sum = asfloat(record.y);
  return s;
}

float FinishFloat(State s) { return s.largest + Log(s.sum); }

#endif  // OPMILL_LOG_SUM_EXP_HLSLI_
