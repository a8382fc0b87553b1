// top_k: lanes that walk a run of candidates and keep the best, sorted, in registers.
//   LARGEST         1 when the largest element comes first
//   KEEP            candidates that a lane keeps, up to TOP_K_MOST_KEPT
//   SOURCE          what it walks: SOURCE_*
//   LAYOUT          how sequences lie in memory: LAYOUT_*
//   WRITES_RESULTS  1 for the operator's outputs, 0 for lists in scratch
//   INDEX_WIDE      1 for 64-bit indices
//   STORES_WORDS    how lists are written: records.hlsli
#include "top_k_constants.h"
#define KERNEL_CONSTANTS TopKKeepConstants
#define SHORT_WALKS WRITES_RESULTS
#include "include/kept_dims.hlsli"
#include "include/top_k_candidates.hlsli"
#include "include/top_k_elements.hlsli"
#include "include/top_k_key.hlsli"

#if WRITES_RESULTS
#include "include/top_k_results.hlsli"
#endif

#define ASCENDING (SOURCE == SOURCE_ELEMENTS || SOURCE == SOURCE_KEYS)

#define BLOCK_KEYS List
#include "include/top_k_block_keys.hlsli"

// Places that are not wanted hold candidates that nothing comes before, so that the last place is
// the worst that is kept, for every k.
void StartKeeping(out Candidate best[KEEP]) {
  [unroll] for (uint i = 0; i < KEEP; ++i) {
    bool wanted = i + c.kept_count >= KEEP;
    best[i].key = wanted ? (BITS)0 : (BITS)0xFFFFFFFFu;
    best[i].position = wanted ? NOWHERE : 0;
  }
}

// Is a candidate better than one that is kept? One that comes in ascending position is behind all that
// equal it.
bool Enters(Candidate candidate, Candidate kept) {
#if ASCENDING
  return KeyAbove(candidate.key, kept.key) || kept.position == NOWHERE;
#else
  return Before(candidate, kept);
#endif
}

// Masks, because vkd3d's compiler takes seconds for the nested choices of the longer condition.
Candidate ChooseEntered(bool enters, Candidate a, Candidate b) {
#if ASCENDING
  return Choose(enters, a, b);
#else
  uint mask = 0u - (uint)enters;
  Candidate chosen;
  chosen.key = b.key ^ ((a.key ^ b.key) & mask);
  chosen.position = b.position ^ ((a.position ^ b.position) & mask);
  return chosen;
#endif
}

// From the last place on, so that each still finds what stood in the one before, and none waits for
// another.
void Insert(inout Candidate best[KEEP], Candidate candidate) {
  [unroll] for (uint j = KEEP - 1; j > 0; --j) {
    Candidate moved = ChooseEntered(Enters(candidate, best[j - 1]), best[j - 1], candidate);
    best[j] = ChooseEntered(Enters(candidate, best[j]), moved, best[j]);
  }
  best[0] = ChooseEntered(Enters(candidate, best[0]), candidate, best[0]);
}

#if SOURCE == SOURCE_KEYS

#define STEP KEY_STEP
uint4 LoadStep(uint base, uint item) { return LoadKeys(base, item); }
BITS StepKey(uint4 v, uint i) { return KeyOfStep(v, i); }
#if IS_WIDE
BITS StepBest(uint4 v) { return LargerKey(v.xy, v.zw); }
#else
BITS StepBest(uint4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }
#endif

#elif SOURCE != SOURCE_RECORDS

#if LAYOUT == LAYOUT_ROWS
#define STEP VECTOR_ELEMENTS
BITS StepBest(uint4 v) { return BestKey(v); }
BITS StepKey(uint4 v, uint i) { return KeyOf(ElementOf(v, i)); }
#elif IS_WIDE
#define STEP 2
BITS StepBest(uint4 v) { return BestKey(v); }
BITS StepKey(uint4 v, uint i) { return KeyOf(i == 0 ? v.xy : v.zw); }
#else
#define STEP 4
BITS StepBest(uint4 v) { return BestOfKeys(RawKeysOf(v << WORD_SHIFT)); }
BITS StepKey(uint4 v, uint i) { return KeyOf(v[i]); }
#endif

// The elements of a step; those of columns past the sequence's end are its last.
uint4 LoadStep(uint start, uint item) {
#if LAYOUT == LAYOUT_ROWS
  return Input[(start + item) / VECTOR_ELEMENTS];
#elif IS_WIDE
  return uint4(LoadElement(start, item), LoadElement(start, min(item + 1, c.part.length - 1)));
#else
  uint last = c.part.length - 1;
  return uint4(LoadElement(start, item), LoadElement(start, min(item + 1, last)),
               LoadElement(start, min(item + 2, last)), LoadElement(start, min(item + 3, last)));
#endif
}

#endif

#ifdef STEP

#define STEP_PART (STEP < 4 ? STEP : 4)

// Some elements of a step that has one to keep. Without a branch for each, which would cost a software
// device more than it saves: at every branch and loop it chooses lane by lane what is kept.
void TakePart(inout Candidate best[KEEP], uint4 v, uint first, uint item, uint begin, uint end) {
  [unroll] for (uint i = 0; i < STEP_PART; ++i) {
    uint at = item + first + i;
    Candidate candidate;
    candidate.key = StepKey(v, first + i);
    candidate.position = at;
#if SOURCE != SOURCE_KEYS
    candidate.position += c.part.first_position;
#endif
    // What lies outside is as good as none.
    Insert(best, Choose(at - begin < end - begin, candidate, NoCandidate()));
  }
}

// Candidates [begin, end), a step at a time: most steps hold nothing that is kept, which one
// question tells. Candidates that come in ascending position must beat the worst that is kept
// (ASCENDING); others may equal it, and are no worse than `least`.
void KeepRun(inout Candidate best[KEEP], uint base, uint begin, uint end, BITS least) {
#if SOURCE != SOURCE_KEYS && LAYOUT == LAYOUT_ROWS
  // Steps are vectors of the tensor; the first may begin before `begin`, and then wraps below zero.
  uint item = begin - (base + begin) % VECTOR_ELEMENTS;
  uint steps = (end - item + STEP - 1) / STEP;
#else
  uint item = begin;
  uint steps = (end - begin + STEP - 1) / STEP;
#endif
  [loop] for (; steps > 0; --steps) {
    uint4 v = LoadStep(base, item);
    BITS step_best = StepBest(v);
#if ASCENDING
    bool enters = KeyAbove(step_best, best[KEEP - 1].key) || best[KEEP - 1].position == NOWHERE;
#else
    bool enters = !KeyAbove(best[KEEP - 1].key, step_best) && !KeyAbove(least, step_best);
#endif
    [branch] if (enters) {
#if STEP <= 4
      TakePart(best, v, 0, item, begin, end);
#else
      [loop] for (uint first = 0; first < STEP; first += STEP_PART) {
        TakePart(best, v, first, item, begin, end);
      }
#endif
    }
    item += STEP;
  }
}

#endif

#if SOURCE == SOURCE_BLOCKS

// The block of a winner, counted within this dispatch's part of the sequence. Those of other parts
// come out at c.block_count or above.
uint BlockOf(uint4 winner) { return winner.z - c.first_block; }

// Items are the elements of the winning blocks, one block after another. Where one stands in the
// part, and how many from it on lie in its block, up to `end`.
uint FirstRow(uint block, uint item) {
  return block * c.block_length + item % c.block_length;
}
uint CountInBlock(uint item, uint end) {
  return min(c.block_length - item % c.block_length, end - item);
}

#endif

void KeepBestOf(uint unit) {
#if WRITES_RESULTS  // of whole sequences
  uint sequence = unit;
  uint run = 0;
#else
  // Neighbouring lanes walk neighbouring sequences: their lists lie side by side after columns.
  uint sequence = unit % c.sequences;
  uint run = unit / c.sequences;
#endif
  uint begin = run * c.run_length;
  uint end = min(begin + c.run_length, c.list_length);
  bool has_any = true;

  Candidate best[KEEP];
  StartKeeping(best);
#if SOURCE == SOURCE_ELEMENTS
  Offsets place = KeptOffsets(sequence);
  KeepRun(best, FirstElement(place.input), begin, end, (BITS)0);
#elif SOURCE == SOURCE_KEYS
  KeepRun(best, KeyBase(sequence), begin, end, (BITS)0);
#elif SOURCE == SOURCE_BLOCKS
  uint start = FirstElement(KeptOffsets(sequence).input);
  uint before = ElementsBefore(start);
  uint winners = instance.read1 + sequence * c.list_stride;
  BITS least = RecordKey(List[winners + c.winners - 1]);
  has_any = false;
  // A run lies in one block or is made of whole ones, up to 32. First which of them must be searched,
  // a bit each; then each lane searches one of its own at the same time.
  uint open = 0;
  [loop] for (uint i = 0; begin + i * c.block_length < end; ++i) {
    uint item = begin + i * c.block_length;
    uint4 winner = List[winners + item / c.block_length];
    uint block = BlockOf(winner);
    bool is_searched = block < c.block_count;
    has_any = has_any || is_searched;
#if LAYOUT == LAYOUT_COLUMNS
    if (is_searched) {
      uint key_at = KeyBase(sequence) - instance.read1 * KEY_STEP +
                    (block + c.first_block) * c.keys.item_stride;
      uint runner_at = instance.write1 + key_at / 4 * 8 + key_at % 4;
      // Alone in its block, and known. The run that has the row takes it.
      if (KeyAbove(least, (BITS)Words[runner_at])) {
        is_searched = false;
        Candidate candidate;
        candidate.key = RecordKey(winner);
        uint row = Words[runner_at + 4];
        candidate.position = c.part.first_position + row;
        [branch] if (row - FirstRow(block, item) < CountInBlock(item, end)) Insert(best, candidate);
      }
    }
#endif
    open |= (uint)is_searched << i;
  }
  [loop] while (open != 0) {
    uint item = begin + firstbitlow(open) * c.block_length;
    open &= open - 1;
    uint from = FirstRow(BlockOf(List[winners + item / c.block_length]), item);
    uint to = min(from + CountInBlock(item, end) - before, c.part.length);
    from = max(from, before) - before;
    if (from < to) KeepRun(best, start, from, to, least);
  }
  // Where sequences have several parts, a run lies in one block, and one dispatch has that.
  has_any = has_any || c.run_length > c.block_length;
#else
  uint start = instance.read1 + sequence * c.list_stride;
  bool are_candidates = false;
  if (c.counted != 0) {
    end = min(end, CountOf(sequence));
    are_candidates = Words[HeaderOf(sequence) + IS_TAKEN_AT] == 0;
  }
  has_any = begin < end;
  [loop] for (uint item = begin; item < end; ++item) {
    uint4 record;
    if (are_candidates) {
      record = Input[instance.read0 + sequence * c.candidate_stride + item];
    } else {
      record = List[start + item * c.list_item_stride];
    }
    Insert(best, FromRecord(record));
  }
#endif
#if !WRITES_RESULTS
  uint at = c.first_record + sequence * c.record_stride + run * c.kept_count;
#endif
  [unroll] for (uint j = 0; j < KEEP; ++j) {
    if (has_any && j + c.kept_count >= KEEP) {
      uint rank = j + c.kept_count - KEEP;
#if WRITES_RESULTS
      StoreResult(place, rank, best[j].key, best[j].position);
#else
      StoreCandidate(at + rank, best[j]);
#endif
    }
  }
}

[numthreads(THREADS, 1, 1)]
void KeepBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
#if SOURCE == SOURCE_ELEMENTS
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) KeepBestOf(unit);
#else
  // One turn: a loop more costs a software device a tenth of their time.
  if (units.x < units.y) KeepBestOf(units.x);
#endif
}
