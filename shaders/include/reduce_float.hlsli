// Float functions accumulate in 32 bits, FLOAT16 too, and round once at the store.
#include "include/float_math.hlsli"

#define HIGH_ELEMENTS 0
#define TAKES_FOUR 1

// AVERAGE keeps a second sum, scaled by 2^-32, for means whose plain sum overflows.
#define HAS_SCALED (FUNCTION == FUNCTION_AVERAGE && DATA_TYPE == TYPE_FLOAT32)
#define AVERAGE_SCALE (1.0f / 4294967296.0f)

FLOATS FloatOf(UINTS bits) {
#if DATA_TYPE == TYPE_FLOAT16
  return f16tof32(bits);
#else
  return asfloat(bits);
#endif
}

#if FUNCTION == FUNCTION_LOG_SUM_EXP
#include "include/log_sum_exp.hlsli"
#else

#if FUNCTION != FUNCTION_MULTIPLY
#define EMPTY_ELEMENT 0u
#elif DATA_TYPE == TYPE_FLOAT16
#define EMPTY_ELEMENT 0x3C00u
#else
#define EMPTY_ELEMENT 0x3F800000u
#endif

struct Part {
  FLOATS value;
#if HAS_SCALED
  FLOATS scaled;
#endif
};

Part EmptyPart() {
  Part p;
  p.value = (FLOATS)(FUNCTION == FUNCTION_MULTIPLY ? 1.0f : 0.0f);
#if HAS_SCALED
  p.scaled = (FLOATS)0.0f;
#endif
  return p;
}

Part PartOf(UINTS bits) {
  Part p;
  p.value = FloatOf(bits);
#if FUNCTION == FUNCTION_L1
  p.value = abs(p.value);
#elif FUNCTION == FUNCTION_L2 || FUNCTION == FUNCTION_SUM_SQUARE
  p.value *= p.value;
#endif
#if HAS_SCALED
  // The opaque zero keeps compilers from adding before scaling.
  p.scaled = asfloat(asuint(p.value * AVERAGE_SCALE) + c.groups.zero);
#endif
  return p;
}

Part Join(Part a, Part b) {
#if FUNCTION == FUNCTION_MULTIPLY
  a.value *= b.value;
#else
  a.value += b.value;
#endif
#if HAS_SCALED
  a.scaled += b.scaled;
#endif
  return a;
}

// Adds in pairs: each addition may lose half a unit in the last place.
void Take(inout Part p, BITS b0, BITS b1, BITS b2, BITS b3, BOOLS in0, BOOLS in1, BOOLS in2,
          BOOLS in3) {
  Part first = Join(PartOf(in0 ? b0 : (BITS)EMPTY_ELEMENT), PartOf(in1 ? b1 : (BITS)EMPTY_ELEMENT));
  Part second =
      Join(PartOf(in2 ? b2 : (BITS)EMPTY_ELEMENT), PartOf(in3 ? b3 : (BITS)EMPTY_ELEMENT));
  p = Join(p, Join(first, second));
}

#define PART_WORDS (1 + HAS_SCALED)
#include "include/reduction_words.hlsli"

Words WordsOf(Part p) {
  Words w;
  w.a = asuint(p.value);
#if HAS_SCALED
  w.b = asuint(p.scaled);
#endif
  return w;
}

Part PartOfWords(Words w) {
  Part p;
  p.value = asfloat(w.a);
#if HAS_SCALED
  p.scaled = asfloat(w.b);
#endif
  return p;
}

FLOATS FinishFloat(Part p) {
#if FUNCTION == FUNCTION_AVERAGE
  float count = (float)c.reduced_count;
  FLOATS mean = p.value / count;
#if HAS_SCALED
  mean = IsFiniteFloat(p.value) ? mean : p.scaled / (count * AVERAGE_SCALE);
#endif
  return mean;
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
