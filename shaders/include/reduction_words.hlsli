// Part of reduction.hlsli: a part as 1 to 3 words (PART_WORDS), for other lanes and later passes.
struct Words {
  UINTS a;
#if PART_WORDS > 1
  UINTS b;
#endif
#if PART_WORDS > 2
  UINTS c;
#endif
};
