// Part of reduction.hlsli: lanes that share a unit join their parts.

// In rows all components of a lane's part are equal, so that one is shared; in columns WIDTH are.
#if IS_COLUMN
#define SHARED UINTS
#define SHARED_OF(word) word
#else
#define SHARED uint
#define SHARED_OF(word) COMPONENT(word, 0)
#endif

groupshared SHARED shared_a[THREADS];
#if PART_WORDS > 1
groupshared SHARED shared_b[THREADS];
#endif
#if PART_WORDS > 2
groupshared SHARED shared_c[THREADS];
#endif

void Show(uint lane, Part part) {
  Words words = WordsOf(part);
  shared_a[lane] = SHARED_OF(words.a);
#if PART_WORDS > 1
  shared_b[lane] = SHARED_OF(words.b);
#endif
#if PART_WORDS > 2
  shared_c[lane] = SHARED_OF(words.c);
#endif
}

Part Shown(uint lane) {
  Words words;
  words.a = (UINTS)shared_a[lane];
#if PART_WORDS > 1
  words.b = (UINTS)shared_b[lane];
#endif
#if PART_WORDS > 2
  words.c = (UINTS)shared_c[lane];
#endif
  return PartOfWords(words);
}

// Joins the parts of all lanes that share a unit into the part of the first of them. Each step
// leaves an eighth of the parts.
void Share(inout Part mine, uint lane, uint part) {
  [loop] for (uint parts = 1u << c.lane_bits; parts > 1; parts = (parts + 7) / 8) {
    uint rest = (parts + 7) / 8;
    Show(lane, mine);
    GroupMemoryBarrierWithGroupSync();
    if (part < rest) {
      [loop] for (uint other = rest; part + other < parts; other += rest) {
        mine = Join(mine, Shown(lane + (other << c.part_shift)));
      }
    }
    GroupMemoryBarrierWithGroupSync();
  }
}
