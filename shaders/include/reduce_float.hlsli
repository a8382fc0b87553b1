// Float functions accumulate in 32 bits, FLOAT16 too, and round once at the store.
#include "include/float_math.hlsli"

#define HIGH_ELEMENTS 0

FLOATS FloatOf(UINTS bits) {
#if DATA_TYPE == TYPE_FLOAT16
  return f16tof32(bits);
#else
  return asfloat(bits);
#endif
}

#if FUNCTION == FUNCTION_LOG_SUM_EXP
#include "include/log_sum_exp.hlsli"
#elif FUNCTION == FUNCTION_AVERAGE && DATA_TYPE == TYPE_FLOAT32
#include "include/reduce_average.hlsli"
#else

#define VALUE FLOATS
#define VALUE_OF_WORDS(w) asfloat(w.x)
#define JOINS_PAIRS 1
#define EMPTY_VALUE (FLOATS)(FUNCTION == FUNCTION_MULTIPLY ? 1.0f : 0.0f)

FLOATS ValueOf(UINTS bits) {
  FLOATS x = FloatOf(bits);
#if FUNCTION == FUNCTION_L1
  return abs(x);
#elif FUNCTION == FUNCTION_L2 || FUNCTION == FUNCTION_SUM_SQUARE
  return x * x;
#else
  return x;
#endif
}

FLOATS JoinValues(FLOATS a, FLOATS b) { return FUNCTION == FUNCTION_MULTIPLY ? a * b : a + b; }

#include "include/value_part.hlsli"

FLOATS FinishFloat(Part p) {
#if FUNCTION == FUNCTION_AVERAGE
  return p.value / (float)c.reduced_count;
#elif FUNCTION == FUNCTION_L2
  return sqrt(p.value);
#elif FUNCTION == FUNCTION_LOG_SUM
  return Log(p.value);
#else
  return p.value;
#endif
}

#endif

UINTS Finish(Part p) {
  FLOATS result = FinishFloat(p);
#if FUNCTION != FUNCTION_MULTIPLY
  // A sum that is zero is +0. Starting the sum with +0 does not ensure this, because compilers may
  // omit that addition.
  result = asuint(result) == 0x80000000u ? (FLOATS)0.0f : result;
#endif
#if DATA_TYPE == TYPE_FLOAT16
  return HalfBits(result);
#else
  return asuint(result);
#endif
}
