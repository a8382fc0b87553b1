// MIN and MAX over keys: every driver agrees on NaN, denormals and -0 (below +0).
#define CASCADE 0
#define HEAVY 0

struct State {
  BITS key;
};

State Identity() {
  State s;
  s.key = (BITS)0;
  return s;
}

void Combine(inout State s, State other) {
#if IS_WIDE
  if (KeyAbove(other.key, s.key)) s.key = other.key;
#else
  s.key = max(s.key, other.key);
#endif
}

void Accumulate(inout State s, BITS bits, uint item, bool valid) {
  State other;
  other.key = NumberKey(bits);
#if FUNCTION == FUNCTION_MIN
  other.key = Flip(other.key);
#endif
#if IS_FLOAT
  if (IsNan(bits)) other.key = ELEMENT_MASK;
#endif
  if (valid) Combine(s, other);
}

uint4 Pack(State s) {
#if IS_WIDE
  return uint4(s.key, 0, 0);
#else
  return uint4(s.key, 0, 0, 0);
#endif
}

State Unpack(uint4 record) {
  State s;
#if IS_WIDE
  s.key = record.xy;
#else
  s.key = record.x;
#endif
  return s;
}

BITS Finish(State s) {
#if IS_FLOAT
  if (s.key == ELEMENT_MASK) return QUIET_NAN_BITS;
#endif
#if FUNCTION == FUNCTION_MIN
  return NumberOfKey(Flip(s.key));
#else
  return NumberOfKey(s.key);
#endif
}
