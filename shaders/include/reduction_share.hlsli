// Part of reduction.hlsli: lanes that share a unit join their parts.

// In rows all components of a lane's part are equal, so that one is shared; in columns WIDTH are.
#if IS_COLUMN
#define SHARED UINTS
#define SHARED_OF(word) word
#else
#define SHARED uint
#define SHARED_OF(word) COMPONENT(word, 0)
#endif

#define DECLARE_SHARED(w) groupshared SHARED shared_##w[THREADS];
EACH_WORD(DECLARE_SHARED)

void Show(uint lane, Part part) {
  Words words = WordsOf(part);
#define SHOW_WORD(w) shared_##w[lane] = SHARED_OF(words.w);
  EACH_WORD(SHOW_WORD)
}

Part Shown(uint lane) {
  Words words;
#define READ_WORD(w) words.w = (UINTS)shared_##w[lane];
  EACH_WORD(READ_WORD)
  return PartOfWords(words);
}

// Returns to the first of the lanes that share a unit the parts of all of them, joined. Each step
// leaves an eighth of the parts.
Part ShareParts(Part mine, uint lane, uint part) {
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
  return mine;
}
