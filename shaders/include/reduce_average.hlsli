// AVERAGE of FLOAT32 keeps a second sum, scaled by 2^-32, for means whose plain sum overflows.
#define AVERAGE_SCALE (1.0f / 4294967296.0f)
#define FIRST sum
#define SECOND scaled
#include "include/pair_part.hlsli"

Part EmptyPart() {
  Part p = {(FLOATS)0.0f, (FLOATS)0.0f};
  return p;
}

Part PartOf(UINTS bits, BOOLS inside) {
  Part p;
  p.sum = inside ? asfloat(bits) : (FLOATS)0.0f;
  // The opaque zero keeps compilers from adding before scaling.
  p.scaled = asfloat(asuint(p.sum * AVERAGE_SCALE) + c.groups.zero);
  return p;
}

Part Join(Part a, Part b) {
  a.sum += b.sum;
  a.scaled += b.scaled;
  return a;
}

// Joins pairs, as value_part.hlsli does.
void Take(inout Part p, UINTS b0, UINTS b1, UINTS b2, UINTS b3, BOOLS in0, BOOLS in1, BOOLS in2,
          BOOLS in3, uint turn) {
  Part first = Join(PartOf(b0, in0), PartOf(b1, in1));
  p = Join(p, Join(first, Join(PartOf(b2, in2), PartOf(b3, in3))));
}

FLOATS FinishFloat(Part p) {
  float count = (float)c.reduced_count;
  return IsFiniteFloat(p.sum) ? p.sum / count : p.scaled / (count * AVERAGE_SCALE);
}
