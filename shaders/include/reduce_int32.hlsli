// SUM, MULTIPLY, L1 and SUM_SQUARE of 32-bit integers wrap.
#define CASCADE 0
#define HIGH_ELEMENTS 0

struct Part {
  uint value;
};

#define EMPTY_ELEMENT (FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u)

Part EmptyPart() {
  Part p;
  p.value = EMPTY_ELEMENT;
  return p;
}

Part PartOf(uint bits) {
  Part p;
  p.value = bits;
#if FUNCTION == FUNCTION_L1 && IS_SIGNED_INT
  p.value = (uint)abs((int)bits);
#elif FUNCTION == FUNCTION_SUM_SQUARE
  p.value = bits * bits;
#endif
  return p;
}

Part Join(Part a, Part b) {
#if FUNCTION == FUNCTION_MULTIPLY
  a.value *= b.value;
#else
  a.value += b.value;
#endif
  return a;
}

struct State {
  Part part;
};

State Identity() {
  State s;
  s.part = EmptyPart();
  return s;
}

void Take(inout State s, Part p, uint item) { s.part = Join(s.part, p); }

void Combine(inout State s, State other) { s.part = Join(s.part, other.part); }

uint4 Pack(State s) { return uint4(s.part.value, 0, 0, 0); }

State Unpack(uint4 record) {
  State s;
  s.part.value = record.x;
  return s;
}

uint Finish(State s) { return s.part.value; }
