// top_k. A sequence's blocks each send their best element, its champion; the blocks of the k best
// champions hold the k best elements, so that only those are sorted: in short runs by lanes, which
// are then merged, each run cut to k.
//   LARGEST, NAN_FIRST=0  the order, as in candidate.hlsli
//   KEEP                  candidates that a lane keeps, a power of two up to 16
//   SOURCE                SOURCE_ELEMENTS or SOURCE_RECORDS
//   INDEX_WIDE            1 for 64-bit indices
#include "include/candidate.hlsli"
#include "include/dispatch.hlsli"

#define SOURCE_ELEMENTS 0
#define SOURCE_RECORDS 1

Buffer<uint4> Input : register(t0);  // elements
Buffer<uint4> List : register(t1);   // records

#if WRITES_RESULTS
RWBuffer<BITS> Values : register(u0);
#if INDEX_WIDE
RWBuffer<uint2> Indices : register(u1);
#else
RWBuffer<uint> Indices : register(u1);
#endif
#else
RWBuffer<uint4> Records : register(u0);
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

uint4 ToRecord(Candidate candidate) { return PackCandidate(candidate.key, candidate.position); }

bool Before(Candidate a, Candidate b) {
  return CandidateBefore(a.key, a.position, b.key, b.position);
}

Candidate Choose(bool first, Candidate a, Candidate b) {
  Candidate chosen;
  chosen.key = first ? a.key : b.key;
  chosen.position = first ? a.position : b.position;
  return chosen;
}

// Element `local` of this dispatch's part of the sequence that starts at `start`.
BITS LoadElement(uint start, uint local) {
  uint at = instance.read0 * VECTOR_ELEMENTS + start + local * c.reduced[0].input_stride;
  return ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
}

Candidate LoadCandidate(uint start, uint local) {
  Candidate candidate;
  candidate.key = CandidateKeyOf(LoadElement(start, local));
  candidate.position = c.index_base + local;
  return candidate;
}

#if !WRITES_RESULTS

// --- a lane walks a run of candidates and keeps the best, sorted, in registers ---

#ifdef KEEP

[numthreads(THREADS, 1, 1)]
void KeepBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
  // Neighbouring lanes walk neighbouring sequences: their lists lie side by side after columns.
  uint sequence = unit % c.sequences;
  uint run = unit / c.sequences;
  uint begin = run * c.item_count;
  uint end = min(begin + c.item_count, c.list_length);

  Candidate best[KEEP];
  [unroll] for (uint i = 0; i < KEEP; ++i) best[i] = NoCandidate();
#if SOURCE == SOURCE_ELEMENTS
  uint start = c.input_base + KeptOffsets(sequence).input;
#else
  uint start = instance.read1 + c.input_base + sequence * c.read_stride;
#endif
  [loop] for (uint item = begin; item < end; ++item) {
#if SOURCE == SOURCE_ELEMENTS
    Candidate candidate = LoadCandidate(start, item);
#else
    Candidate candidate = FromRecord(List[start + item * c.read_item_stride]);
#endif
    [unroll] for (uint j = 0; j < KEEP; ++j) {
      // A swap by masks: vkd3d's compiler takes exponential time for a chain of choices.
      uint mask = 0u - (uint)Before(candidate, best[j]);
      BITS key_change = (candidate.key ^ best[j].key) & mask;
      uint position_change = (candidate.position ^ best[j].position) & mask;
      candidate.key ^= key_change;
      candidate.position ^= position_change;
      best[j].key ^= key_change;
      best[j].position ^= position_change;
    }
  }
  uint at = instance.write0 + c.record_base + sequence * c.record_stride + run * c.k;
  [unroll] for (uint rank = 0; rank < KEEP; ++rank) {
    if (rank < c.k) Records[at + rank] = ToRecord(best[rank]);
  }
}

#endif  // KEEP

// --- merging sorted runs in pairs: from item_count records a run to k, the last of them shorter ---

#define MERGE_CHUNK 32

Candidate RunAt(uint run_start, uint item, uint length) {
  Candidate candidate = NoCandidate();
  if (item < length) candidate = FromRecord(List[run_start + item]);
  return candidate;
}

[numthreads(THREADS, 1, 1)]
void MergeRuns(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
  uint chunks = (c.k + MERGE_CHUNK - 1) / MERGE_CHUNK;
  uint first = (unit % chunks) * MERGE_CHUNK;
  uint merged = (unit / chunks) % c.runs;
  uint sequence = unit / chunks / c.runs;

  uint a_begin = merged * 2 * c.item_count;
  uint b_begin = min(a_begin + c.item_count, c.list_length);
  uint a_length = b_begin - a_begin;
  uint b_length = min(c.item_count, c.list_length - b_begin);
  uint end = min(min(first + MERGE_CHUNK, a_length + b_length), c.k);
  if (first >= end) return;
  uint a_start = instance.read1 + c.input_base + sequence * c.read_stride + a_begin;
  uint b_start = a_start + a_length;

  // How many of the first `first` merged records come from run a.
  uint low = first > b_length ? first - b_length : 0;
  uint high = min(first, a_length);
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
  uint out_start =
      instance.write0 + c.record_base + sequence * c.record_stride + merged * c.k;
  // One load and one store a step whichever run gives: a software device runs both sides of a branch.
  [loop] for (uint rank = first; rank < end; ++rank) {
    bool from_a = Before(a, b);
    Candidate best = Choose(from_a, a, b);
    Records[out_start + rank] = ToRecord(best);
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

// --- the elements of the winning champions' blocks ---

[numthreads(THREADS, 1, 1)]
void GatherBlocks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
  uint item = unit % c.list_length;
  uint sequence = unit / c.list_length;
  uint winner = item / c.block_length;
  // Every winner lies in the part of exactly one dispatch; wrapping makes that one comparison.
  uint local = List[instance.read1 + c.read_stride * sequence + winner].z - c.index_base;
  if (local >= c.index_count) return;
  uint start = c.input_base + KeptOffsets(sequence).input;
  uint before = start % c.block_align;
  uint block_start = (local + before) / c.block_length * c.block_length;
  uint element = block_start + item % c.block_length - before;
  Candidate candidate = NoCandidate();
  if (element < c.index_count) candidate = LoadCandidate(start, element);
  uint at = instance.write0 + c.record_base + sequence * c.record_stride + item;
  Records[at] = ToRecord(candidate);
}

#else

// --- the operator's two outputs: values are the elements' own bits ---

[numthreads(THREADS, 1, 1)]
void WriteResults(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = EnterGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
  uint rank = unit % c.item_count;
  uint sequence = unit / c.item_count;
  uint position = List[instance.read1 + c.read_stride * sequence + c.rank_base + rank].z;
  uint local = position - c.index_base;
  if (local >= c.index_count) return;
  Offsets at = KeptOffsets(sequence);
  uint value_at = c.output_base + at.output + rank * c.reduced[0].output_stride;
  Values[instance.write0 + value_at] = LoadElement(c.input_base + at.input, local);
  uint index_at = c.output2_base + at.index + rank * c.reduced[0].index_stride;
#if INDEX_WIDE
  Indices[instance.write1 + index_at] = uint2(position, 0);
#else
  Indices[instance.write1 + index_at] = position;
#endif
}

#endif
