// Part of reduction.hlsli: a part as 1 to 3 words (PART_WORDS), for other lanes and later passes.
#if PART_WORDS == 1
#define EACH_WORD(DO) DO(x)
#define ALL_WORDS(words) words.x
#elif PART_WORDS == 2
#define EACH_WORD(DO) DO(x) DO(y)
#define ALL_WORDS(words) words.x, words.y
#else
#define EACH_WORD(DO) DO(x) DO(y) DO(z)
#define ALL_WORDS(words) words.x, words.y, words.z
#endif

struct Words {
#define DECLARE_WORD(w) UINTS w;
  EACH_WORD(DECLARE_WORD)
};
