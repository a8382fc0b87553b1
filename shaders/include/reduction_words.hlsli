// Of reduction.hlsli: PART_WORDS words, 1 to 3, in which lanes show a part to each other and to later
// passes.
struct Words {
  UINTS a;
#if PART_WORDS > 1
  UINTS b;
#endif
#if PART_WORDS > 2
  UINTS c;
#endif
};
