// top_k: lanes that keep the best of a run, sorted, in registers; merges of such runs; the results.
//   LARGEST         1 when the largest element comes first
//   KEEP            candidates that a lane keeps, up to 32
//   SOURCE          what it walks: SOURCE_*
//   LAYOUT          how sequences lie in memory: LAYOUT_*
//   WRITES_RESULTS  1 for the operator's outputs, 0 for lists in scratch
//   INDEX_WIDE      1 for 64-bit indices
//   STORES_WORDS    how lists are written: records.hlsli
#define SHORT_WALKS WRITES_RESULTS
#include "include/candidate.hlsli"
#include "include/dispatch.hlsli"
#include "include/records.hlsli"
#include "include/top_k_header.hlsli"
#include "include/top_k_key.hlsli"
#include "include/top_k_elements.hlsli"

#define SOURCE_ELEMENTS 0
#define SOURCE_RECORDS 1
#define SOURCE_KEYS 2    // of blocks
#define SOURCE_BLOCKS 3  // the elements of the blocks that a list names
#define ASCENDING (SOURCE == SOURCE_ELEMENTS || SOURCE == SOURCE_KEYS)

Buffer<uint4> List : register(t1);  // records

#if WRITES_RESULTS
#include "include/top_k_results.hlsli"
#else
RWBuffer<WRITTEN_RECORD> Records : register(u0);
// Of columns' blocks, see top_k_blocks.hlsl; or the headers of a selection.
RWBuffer<uint> Words : register(u1);
#endif

struct Candidate {
  BITS key;
  uint position;
};

Candidate NoCandidate() {
  Candidate candidate;
  candidate.key = (BITS)0;
  candidate.position = NOWHERE;
  return candidate;
}

Candidate FromRecord(uint4 record) {
  Candidate candidate;
  candidate.key = RecordKey(record);
  candidate.position = record.z;
  return candidate;
}

bool Before(Candidate a, Candidate b) {
  return CandidateBefore(a.key, a.position, b.key, b.position);
}

Candidate Choose(bool first, Candidate a, Candidate b) {
  Candidate chosen;
  chosen.key = first ? a.key : b.key;
  chosen.position = first ? a.position : b.position;
  return chosen;
}

#if !WRITES_RESULTS

void StoreCandidate(uint at, Candidate candidate) {
  STORE_RECORD(Records, instance.write0, at, PackCandidate(candidate.key, candidate.position),
               CANDIDATE_WORDS)
}

// Candidates that are left to sort here: none where they have been spread.
uint CountOf(uint sequence) {
  uint at = HeaderOf(sequence);
  return Words[at + IS_SPREAD_AT] != 0 ? 0 : Words[at + COUNT_AT];
}

#endif

// --- a lane walks a run of candidates and keeps the best, sorted, in registers ---

#ifdef KEEP

#define BLOCK_KEYS List
#include "include/top_k_block_keys.hlsli"

// Places that are not wanted hold candidates that nothing comes before, so that the last place is
// the worst that is kept, whatever k.
void StartKeeping(out Candidate best[KEEP]) {
  [unroll] for (uint i = 0; i < KEEP; ++i) {
    bool wanted = i + c.k >= KEEP;
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

// Of the longer question vkd3d's compiler makes nested choices that take it seconds: hence masks.
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
  return uint4(LoadElement(start, item), LoadElement(start, min(item + 1, c.index_count - 1)));
#else
  uint last = c.index_count - 1;
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
    candidate.position += c.index_base;
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
uint BlockOf(uint4 winner) { return winner.z - c.block_base; }

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
  uint begin = run * c.item_count;
  uint end = min(begin + c.item_count, c.list_length);
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
  uint winners = instance.read1 + sequence * c.read_stride;
  BITS least = RecordKey(List[winners + c.runs - 1]);
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
                    (block + c.block_base) * c.key_item_stride;
      uint runner_at = instance.write1 + key_at / 4 * 8 + key_at % 4;
      // Alone in its block, and known. The run that has the row takes it.
      if (KeyAbove(least, (BITS)Words[runner_at])) {
        is_searched = false;
        Candidate candidate;
        candidate.key = RecordKey(winner);
        uint row = Words[runner_at + 4];
        candidate.position = c.index_base + row;
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
    uint to = min(from + CountInBlock(item, end) - before, c.index_count);
    from = max(from, before) - before;
    if (from < to) KeepRun(best, start, from, to, least);
  }
  // Where sequences have several parts, a run lies in one block, and one dispatch has that.
  has_any = has_any || c.item_count > c.block_length;
#else
  uint start = instance.read1 + c.input_base + sequence * c.read_stride;
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
      record = List[start + item * c.read_item_stride];
    }
    Insert(best, FromRecord(record));
  }
#endif
#if !WRITES_RESULTS
  uint at = c.record_base + sequence * c.record_stride + run * c.k;
#endif
  [unroll] for (uint j = 0; j < KEEP; ++j) {
    if (has_any && j + c.k >= KEEP) {
      uint rank = j + c.k - KEEP;
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

#elif !WRITES_RESULTS

// --- merging sorted runs in pairs ---

// Records of a run that holds the item_count best of its split_items elements, the last ones fewer.
uint RunLength(uint run, uint count) {
  uint first = run * c.split_items;
  return first < count ? min(min(count - first, c.split_items), c.item_count) : 0;
}

Candidate RunAt(uint run_start, uint item, uint length) {
  Candidate candidate = NoCandidate();
  if (item < length) candidate = FromRecord(List[run_start + item]);
  return candidate;
}

#define MERGE_CHUNK 32

void MergeChunk(uint unit) {
  uint chunks = (c.k + MERGE_CHUNK - 1) / MERGE_CHUNK;
  uint first = (unit % chunks) * MERGE_CHUNK;
  uint merged = (unit / chunks) % c.runs;
  uint sequence = unit / chunks / c.runs;

  uint count = c.list_length;
  if (c.counted != 0) count = min(count, CountOf(sequence));
  uint a_length = RunLength(merged * 2, count);
  uint b_length = RunLength(merged * 2 + 1, count);
  uint end = min(min(first + MERGE_CHUNK, a_length + b_length), c.k);
  uint a_start = instance.read1 + c.input_base + sequence * c.read_stride +
                 merged * 2 * c.item_count;
  uint b_start = a_start + c.item_count;

  // How many of the first `first` merged records come from run a.
  uint low = first > b_length ? first - b_length : 0;
  uint high = first < end ? min(first, a_length) : low;
  [loop] while (low < high) {
    uint middle = (low + high) / 2;
    if (Before(RunAt(a_start, middle, a_length),
               RunAt(b_start, first - 1 - middle, b_length))) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  uint a_item = low;
  uint b_item = first - low;
  Candidate a = RunAt(a_start, a_item, a_length);
  Candidate b = RunAt(b_start, b_item, b_length);
  uint out_start = c.record_base + sequence * c.record_stride + merged * c.k;
  // One load and one store a step whichever run gives: software devices run both sides of a branch.
  [loop] for (uint rank = first; rank < end; ++rank) {
    bool from_a = Before(a, b);
    Candidate best = Choose(from_a, a, b);
    StoreCandidate(out_start + rank, best);
    a_item += from_a ? 1 : 0;
    b_item += from_a ? 0 : 1;
    bool more = from_a ? a_item < a_length : b_item < b_length;
    uint at = from_a ? a_start + a_item : b_start + b_item;
    Candidate next = FromRecord(List[more ? at : a_start]);
    next = Choose(more, next, NoCandidate());
    a = Choose(from_a, next, a);
    b = Choose(from_a, b, next);
  }
}

[numthreads(THREADS, 1, 1)]
void MergeRuns(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) MergeChunk(unit);
}

#else

// --- lists into the operator's two outputs ---

void WriteResult(uint unit) {
  uint rank = unit % c.item_count;
  uint sequence = unit / c.item_count;
  uint record = instance.read1 + c.read_stride * sequence + c.rank_base + rank;
  Candidate candidate = FromRecord(List[record]);
  // Of several parts, that which has the element.
  if (candidate.position - c.index_base < c.index_count) {
    StoreResult(KeptOffsets(sequence), rank, candidate.key, candidate.position);
  }
}

[numthreads(THREADS, 1, 1)]
void WriteResults(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint2 units = EnterUnits(group, lane);
  [loop] for (uint unit = units.x; unit < units.y; unit += THREADS) WriteResult(unit);
}

#endif
