// Float functions accumulate in 32 bits, FLOAT16 too, and round once at the store.
#include "include/float_math.hlsli"

#define CASCADE 1
#define HEAVY (FUNCTION == FUNCTION_LOG_SUM_EXP)

// AVERAGE keeps a second sum, scaled by 2^-32, for means whose plain sum overflows.
// LOG_SUM_EXP keeps the largest element in `value` and the sum of e^(x - largest) in `other`.
struct State {
  float value;
  float other;
};

#define AVERAGE_SCALE (1.0f / 4294967296.0f)

float FloatOf(BITS bits) {
#if DATA_TYPE == TYPE_FLOAT16
  return f16tof32(bits);
#else
  return asfloat(bits);
#endif
}

State Identity() {
  State s;
#if FUNCTION == FUNCTION_MULTIPLY
  s.value = 1.0f;
#elif FUNCTION == FUNCTION_LOG_SUM_EXP
  s.value = -FLOAT_INFINITY;
#else
  s.value = 0.0f;
#endif
  s.other = 0.0f;
  return s;
}

// e^-|a - b|, with e^0 for equal infinities; NaN when either is NaN.
float ExpOfDistance(float a, float b) { return a == b ? 1.0f : ExpNegative(-abs(a - b)); }

void Combine(inout State s, State other) {
#if FUNCTION == FUNCTION_MULTIPLY
  s.value *= other.value;
#elif FUNCTION == FUNCTION_LOG_SUM_EXP
  float scale = ExpOfDistance(s.value, other.value);
  bool higher = other.value > s.value;
  s.other = higher ? s.other * scale + other.other : s.other + other.other * scale;
  s.value = higher ? other.value : s.value;
#else
  s.value += other.value;
  s.other += other.other;
#endif
}

void Accumulate(inout State s, BITS bits, uint item, bool valid) {
  float x = FloatOf(bits);
#if FUNCTION == FUNCTION_LOG_SUM_EXP
  State one;
  one.value = x;
  one.other = 1.0f;
  if (valid) Combine(s, one);
#elif FUNCTION == FUNCTION_MULTIPLY
  s.value *= valid ? x : 1.0f;
#else
#if FUNCTION == FUNCTION_L1
  x = abs(x);
#elif FUNCTION == FUNCTION_L2 || FUNCTION == FUNCTION_SUM_SQUARE
  x = x * x;
#endif
  if (!valid) x = 0.0f;
  s.value += x;
#if FUNCTION == FUNCTION_AVERAGE && DATA_TYPE == TYPE_FLOAT32
  s.other += x * AVERAGE_SCALE;
#endif
#endif
}

uint4 Pack(State s) { return uint4(asuint(s.value), asuint(s.other), 0, 0); }

State Unpack(uint4 record) {
  State s;
  s.value = asfloat(record.x);
  s.other = asfloat(record.y);
  return s;
}

float FinishFloat(State s) {
#if FUNCTION == FUNCTION_AVERAGE
  float count = (float)c.reduced_count;
#if DATA_TYPE == TYPE_FLOAT32
  if (!IsFiniteFloat(s.value)) return s.other / (count * AVERAGE_SCALE);
#endif
  return s.value / count;
#elif FUNCTION == FUNCTION_L2
  return sqrt(s.value);
#elif FUNCTION == FUNCTION_LOG_SUM
  return Log(s.value);
#elif FUNCTION == FUNCTION_LOG_SUM_EXP
  return s.value + Log(s.other);
#else
  return s.value;
#endif
}

BITS Finish(State s) {
#if DATA_TYPE == TYPE_FLOAT16
  return HalfBits(FinishFloat(s));
#else
  return asuint(FinishFloat(s));
#endif
}
