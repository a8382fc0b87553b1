// LOG_SUM_EXP: the sum of e^(x - reference), where the reference is one of the elements, which no
// other one is far above. Elements come in groups: where one is, the sum is rescaled once.
#include "include/float_math.hlsli"
#include "include/items.hlsli"

// `reference` is finite, so that infinities need no case of their own: beside it +inf adds inf to the
// sum and -inf adds nothing. NaN shows in the sum.
struct State {
  FLOATS reference;
  FLOATS sum;
};

State Identity() {
  State s;
  s.reference = (FLOATS)-FLOAT_LARGEST;
  s.sum = (FLOATS)0.0f;
  return s;
}

// `a`, which is no NaN, where `b` is one.
FLOATS Larger(FLOATS a, FLOATS b) { return b > a ? b : a; }

// How far elements may be above the reference: little, or the logarithm of the sum loses bits.
#define HEADROOM 2.0f

FLOATS ExpBeside(FLOATS x, FLOATS reference) { return ExpUpToSome(x - reference); }

// Makes room for elements up to `largest`. A software device then passes over the exponential.
void Refer(inout State s, FLOATS largest) {
  BOOLS above = largest - HEADROOM > s.reference;
  [branch] if (any(above)) {
    FLOATS reference = above ? min(largest, FLOAT_LARGEST) : s.reference;
    s.sum *= ExpBeside(s.reference, reference);
    s.reference = reference;
  }
}

#if WIDTH == 1

// 1: all items at once, where they are few. Not of FLOAT16, for which vkd3d's compiler takes 1 to 4 s
// without a loop.
#define TAKES_ALL_ITEMS (ITEMS > 0 && DATA_TYPE == TYPE_FLOAT32)

// Items that are taken at a time, and places for their elements.
#if TAKES_ALL_ITEMS
#define GROUP_ITEMS ITEMS
#else
#define GROUP_ITEMS (16 / SLOTS)
#endif
#define GROUP_ELEMENTS (GROUP_ITEMS * SLOTS)
#if GROUP_ELEMENTS <= 4
#define GROUP 4
#elif GROUP_ELEMENTS <= 8
#define GROUP 8
#elif GROUP_ELEMENTS <= 12
#define GROUP 12
#elif GROUP_ELEMENTS <= 16
#define GROUP 16
#elif GROUP_ELEMENTS <= 24
#define GROUP 24
#else
#define GROUP 32
#endif

// Of every fourth element from the `i`th on: the largest, the reference among them, and the sum.
#define LARGER(largest, i) Larger(largest, x[i])
#define EXP(i) ExpBeside(x[i], s.reference)
#define LARGEST_4(i) LARGER(s.reference, i)
#define LARGEST_8(i) LARGER(LARGEST_4(i), i + 4)
#define LARGEST_12(i) LARGER(LARGEST_8(i), i + 8)
#define LARGEST_16(i) LARGER(LARGEST_12(i), i + 12)
#define SUM_8(i) (EXP(i) + EXP(i + 4))
#define SUM_16(i) (SUM_8(i) + SUM_8(i + 8))
#if GROUP == 4
#define LARGEST_OF(i) LARGEST_4(i)
#define SUM_OF(i) EXP(i)
#elif GROUP == 8
#define LARGEST_OF(i) LARGEST_8(i)
#define SUM_OF(i) SUM_8(i)
#elif GROUP == 12
#define LARGEST_OF(i) LARGEST_12(i)
#define SUM_OF(i) (SUM_8(i) + EXP(i + 8))
#elif GROUP == 16
#define LARGEST_OF(i) LARGEST_16(i)
#define SUM_OF(i) SUM_16(i)
#elif GROUP == 24
#define LARGEST_OF(i) LARGER(LARGER(LARGEST_16(i), i + 16), i + 20)
#define SUM_OF(i) (SUM_16(i) + SUM_8(i + 16))
#else
#define LARGEST_OF(i) LARGER(LARGER(LARGER(LARGER(LARGEST_16(i), i + 16), i + 20), i + 24), i + 28)
#define SUM_OF(i) (SUM_16(i) + SUM_16(i + 16))
#endif

// Elements that do not count are -inf.
void TakeGroup(inout State s, float x[GROUP]) {
  float largest[4];
  float sums[4];
  uint i;
  [unroll] for (i = 0; i < 4; ++i) largest[i] = LARGEST_OF(i);
  Refer(s, Larger(Larger(largest[0], largest[1]), Larger(largest[2], largest[3])));
  [unroll] for (i = 0; i < 4; ++i) sums[i] = SUM_OF(i);
  s.sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

#endif

// Four elements of the same result. -inf counts for nothing.
void TakeFour(inout State s, FLOATS x0, FLOATS x1, FLOATS x2, FLOATS x3) {
  Refer(s, Larger(Larger(Larger(Larger(s.reference, x0), x1), x2), x3));
  s.sum += (ExpBeside(x0, s.reference) + ExpBeside(x1, s.reference)) +
           (ExpBeside(x2, s.reference) + ExpBeside(x3, s.reference));
}

void TakeOne(inout State s, FLOATS x) {
  Refer(s, Larger(s.reference, x));
  s.sum += ExpBeside(x, s.reference);
}

void Combine(inout State s, State other) {
  FLOATS reference = Larger(s.reference, other.reference);
  s.sum = s.sum * ExpBeside(s.reference, reference) +
          other.sum * ExpBeside(other.reference, reference);
  s.reference = reference;
}

#define STATE_WORDS 2
UINTS FirstWord(State s) { return asuint(s.reference); }
UINTS SecondWord(State s) { return asuint(s.sum); }

State StateOf(UINTS first, UINTS second) {
  State s;
  s.reference = asfloat(first);
  s.sum = asfloat(second);
  return s;
}

FLOATS FinishFloat(State s) { return s.reference + Log(s.sum); }
