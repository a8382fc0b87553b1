// SUM, MULTIPLY, L1 and SUM_SQUARE of 32-bit integers wrap.
#define CASCADE 0
#define HIGH_ELEMENTS 0

struct Part {
  UINTS value;
};

#define EMPTY_ELEMENT (FUNCTION == FUNCTION_MULTIPLY ? 1u : 0u)

Part EmptyPart() {
  Part p;
  p.value = (UINTS)EMPTY_ELEMENT;
  return p;
}

Part PartOf(UINTS bits) {
  Part p;
  p.value = bits;
#if FUNCTION == FUNCTION_L1 && IS_SIGNED_INT
  p.value = (UINTS)abs((INTS)bits);
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

#define STATE_WORDS 1
UINTS FirstWord(State s) { return s.part.value; }

State StateOf(UINTS first, UINTS second) {
  State s;
  s.part.value = first;
  return s;
}

UINTS Finish(State s) { return s.part.value; }
