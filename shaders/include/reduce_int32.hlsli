// SUM, MULTIPLY, L1 and SUM_SQUARE of 32-bit integers wrap.
#define CASCADE 0
#define HEAVY 0

struct State {
  uint value;
};

State Identity() {
  State s;
  s.value = FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u;
  return s;
}

void Combine(inout State s, State other) {
#if FUNCTION == FUNCTION_MULTIPLY
  s.value *= other.value;
#else
  s.value += other.value;
#endif
}

void Accumulate(inout State s, BITS bits, uint item, bool valid) {
  State x;
  x.value = bits;
#if FUNCTION == FUNCTION_L1 && IS_SIGNED_INT
  if ((bits & SIGN_BIT) != 0) x.value = 0u - bits;
#elif FUNCTION == FUNCTION_SUM_SQUARE
  x.value = bits * bits;
#endif
  if (valid) Combine(s, x);
}

uint4 Pack(State s) { return uint4(s.value, 0, 0, 0); }

State Unpack(uint4 record) {
  State s;
  s.value = record.x;
  return s;
}

uint Finish(State s) { return s.value; }
