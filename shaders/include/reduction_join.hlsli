// Part of reduction.hlsli, with JOINS: groups that share results, the splits of a tile, leave their
// parts in memory and count themselves. The last one joins the parts in the order of the splits, so
// that the result does not depend on which one it is. No group waits for another.
//
// All accesses are atomic: groups see each other's without globallycoherent, which vkd3d's compiler
// does not have.

// Results of a unit.
#if IS_COLUMN
#define UNIT_RESULTS SLOTS
#define KEPT_COMPONENTS WIDTH
#else
#define UNIT_RESULTS 1
#define KEPT_COMPONENTS 1
#endif
static const uint WORD_x = 0;
static const uint WORD_y = 1;
static const uint WORD_z = 2;

groupshared uint shared_splits;

// Adjacent units have adjacent words.
uint PartialAt(Task task, uint split, uint result, uint word) {
  uint row = (split * UNIT_RESULTS + result) * PART_WORDS + word;
  return instance.write1 + c.partials_base + row * c.groups.unit_count + task.unit;
}

void LeavePart(Task task, Part part, uint set) {
  if (task.exists && task.part == 0) {
    Words words = WordsOf(part);
    uint before;
    [unroll] for (uint i = 0; i < KEPT_COMPONENTS; ++i) {
#define LEAVE_WORD(w)                                                                    \
  InterlockedExchange(Partials[PartialAt(task, task.split, set * WIDTH + i, WORD_##w)], \
                      COMPONENT(words.w, i), before);
      EACH_WORD(LEAVE_WORD)
    }
  }
}

// How many splits this group has to join: all if the others have left their parts, else none.
uint SplitsToJoin(Task task, uint lane) {
  DeviceMemoryBarrierWithGroupSync();
  if (lane == 0) {
    uint before = c.splits;
    if (task.split < c.splits) {
      uint tile = task.unit / ((uint)THREADS >> c.lane_bits);
      InterlockedAdd(Partials[instance.write1 + tile], 1u, before);
    }
    shared_splits = before + 1 == c.splits ? c.splits : 0;
  }
  GroupMemoryBarrierWithGroupSync();
  return shared_splits;
}

Part LoadPartial(Task task, uint split, uint set) {
  Words words;
  uint word;
#if KEPT_COMPONENTS > 1
  [unroll] for (uint i = 0; i < KEPT_COMPONENTS; ++i) {
#define LOAD_WORD(w)                                                                      \
  InterlockedOr(Partials[PartialAt(task, split, set * WIDTH + i, WORD_##w)], 0u, word); \
  COMPONENT(words.w, i) = word;
    EACH_WORD(LOAD_WORD)
  }
#else
#define LOAD_WORD(w)                                                          \
  InterlockedOr(Partials[PartialAt(task, split, set, WORD_##w)], 0u, word); \
  words.w = (UINTS)word;
  EACH_WORD(LOAD_WORD)
#endif
  return PartOfWords(words);
}

// The lanes that share a unit also share its splits.
Part JoinSplits(Task task, uint splits, uint set) {
  Part total = EmptyPart();
  uint lanes = 1u << c.lane_bits;
  uint split = task.part;
  [loop] while (split < splits) {
    Part chain = EmptyPart();
    uint stop = min(splits, split + CHAIN * lanes);
    [loop] for (; split < stop; split += lanes) {
      chain = Join(chain, LoadPartial(task, split, set));
    }
    total = Join(total, chain);
  }
  return total;
}
