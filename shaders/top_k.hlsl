// top_k. A sequence's blocks each send their best element, its champion; the blocks of the k best
// champions hold the k best elements, so that only those are sorted. Short sequences, and large k,
// are sorted in tiles and merged, each run cut to k.
//   LARGEST, NAN_FIRST=0  the order, as in candidate.hlsli
//   SORT_SIZE             candidates of one tile, a power of two
//   KEEP                  candidates that a lane keeps, at least k
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

// Element `local` of this dispatch's part of the sequence that starts at `start`.
BITS LoadElement(uint start, uint local) {
  uint at = start + local * c.reduced[0].input_stride;
  return ElementOf(Input[at / VECTOR_ELEMENTS], at % VECTOR_ELEMENTS);
}

Candidate LoadCandidate(uint start, uint local) {
  Candidate candidate;
  candidate.key = CandidateKeyOf(LoadElement(start, local));
  candidate.position = c.index_base + local;
  return candidate;
}

#if !WRITES_RESULTS

// --- sorting in tiles: the first k of each are kept, in order ---

#ifdef SORT_SIZE

#define TILE_SLOTS (SORT_SIZE > 256 ? SORT_SIZE : 256)
#define TILES_PER_GROUP (TILE_SLOTS / SORT_SIZE)

groupshared BITS tile_keys[TILE_SLOTS];
groupshared uint tile_positions[TILE_SLOTS];

Candidate TileAt(uint slot) {
  Candidate candidate;
  candidate.key = tile_keys[slot];
  candidate.position = tile_positions[slot];
  return candidate;
}

void SetTile(uint slot, Candidate candidate) {
  tile_keys[slot] = candidate.key;
  tile_positions[slot] = candidate.position;
}

Candidate LoadSlot(uint unit, uint slot) {
  Candidate candidate = NoCandidate();
  uint sequence = unit / c.tiles;
  uint item = (unit % c.tiles) * SORT_SIZE + slot;
  if (unit < c.unit_count && item < c.list_length) {
#if SOURCE == SOURCE_ELEMENTS
    candidate = LoadCandidate(c.input_base + KeptOffsets(sequence).input, item);
#else
    candidate = FromRecord(
        List[c.input_base + sequence * c.read_stride + item * c.read_item_stride]);
#endif
  }
  return candidate;
}

[numthreads(THREADS, 1, 1)]
void SortTiles(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint first_unit = FlatGroup(group) * TILES_PER_GROUP;

  [loop] for (uint slot = lane; slot < TILE_SLOTS; slot += THREADS) {
    SetTile(slot, LoadSlot(first_unit + slot / SORT_SIZE, slot % SORT_SIZE));
  }
  GroupMemoryBarrierWithGroupSync();

  // A bitonic network over every tile at once; the last stage leaves all of them best first.
  [loop] for (uint size = 2; size <= SORT_SIZE; size *= 2) {
    [loop] for (uint reach = size / 2; reach > 0; reach /= 2) {
      [loop] for (uint pair = lane; pair < TILE_SLOTS / 2; pair += THREADS) {
        uint low = ((pair & ~(reach - 1)) << 1) | (pair & (reach - 1));
        Candidate a = TileAt(low);
        Candidate b = TileAt(low + reach);
        bool best_first = (low & (SORT_SIZE - 1) & size) == 0;
        if (Before(b, a) == best_first) {
          SetTile(low, b);
          SetTile(low + reach, a);
        }
      }
      GroupMemoryBarrierWithGroupSync();
    }
  }

  [loop] for (uint sorted = lane; sorted < TILE_SLOTS; sorted += THREADS) {
    uint unit = first_unit + sorted / SORT_SIZE;
    uint rank = sorted % SORT_SIZE;
    if (unit < c.unit_count && rank < c.k) {
      uint at = (unit / c.tiles) * c.record_stride + (unit % c.tiles) * c.k + rank;
      Records[c.record_base + at] = ToRecord(TileAt(sorted));
    }
  }
}

#endif  // SORT_SIZE

// --- small k: a lane walks a run of candidates and keeps the best in registers ---

#ifdef KEEP

[numthreads(THREADS, 1, 1)]
void KeepBest(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = FlatGroup(group) * THREADS + lane;
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
  uint start = c.input_base + sequence * c.read_stride;
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
  uint at = c.record_base + sequence * c.record_stride + run * c.k;
  [unroll] for (uint rank = 0; rank < KEEP; ++rank) {
    if (rank < c.k) Records[at + rank] = ToRecord(best[rank]);
  }
}

#endif  // KEEP

// --- merging sorted runs in pairs; item_count records a run, k records a merged one ---

#define MERGE_CHUNK 8

Candidate RunAt(uint run_start, uint item, uint length) {
  Candidate candidate = NoCandidate();
  if (item < length) candidate = FromRecord(List[run_start + item]);
  return candidate;
}

[numthreads(THREADS, 1, 1)]
void MergeRuns(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = FlatGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
  uint chunks = (c.k + MERGE_CHUNK - 1) / MERGE_CHUNK;
  uint merged_runs = (c.tiles + 1) / 2;
  uint first = (unit % chunks) * MERGE_CHUNK;
  uint merged = (unit / chunks) % merged_runs;
  uint sequence = unit / chunks / merged_runs;

  uint a_start = c.input_base + sequence * c.read_stride + merged * 2 * c.item_count;
  uint b_start = a_start + c.item_count;
  uint a_length = c.item_count;
  uint b_length = merged * 2 + 1 < c.tiles ? c.item_count : 0;

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
  uint out_start = c.record_base + sequence * c.record_stride + merged * c.k;
  [loop] for (uint rank = first; rank < min(first + MERGE_CHUNK, c.k); ++rank) {
    if (Before(a, b)) {
      Records[out_start + rank] = ToRecord(a);
      a = RunAt(a_start, ++a_item, a_length);
    } else {
      Records[out_start + rank] = ToRecord(b);
      b = RunAt(b_start, ++b_item, b_length);
    }
  }
}

// --- the elements of the winning champions' blocks ---

[numthreads(THREADS, 1, 1)]
void GatherBlocks(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = FlatGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
  uint item = unit % c.list_length;
  uint sequence = unit / c.list_length;
  uint winner = item / c.block_length;
  // Every winner lies in the part of exactly one dispatch; wrapping makes that one comparison.
  uint local = List[c.read_stride * sequence + winner].z - c.index_base;
  if (local >= c.index_count) return;
  uint start = c.input_base + KeptOffsets(sequence).input;
  uint before = start % c.block_align;
  uint block_start = (local + before) / c.block_length * c.block_length;
  uint element = block_start + item % c.block_length - before;
  Candidate candidate = NoCandidate();
  if (element < c.index_count) candidate = LoadCandidate(start, element);
  Records[c.record_base + sequence * c.record_stride + item] = ToRecord(candidate);
}

#else

// --- the operator's two outputs: values are the elements' own bits ---

[numthreads(THREADS, 1, 1)]
void WriteResults(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint unit = FlatGroup(group) * THREADS + lane;
  if (unit >= c.unit_count) return;
  uint rank = unit % c.item_count;
  uint sequence = unit / c.item_count;
  uint position = List[c.read_stride * sequence + c.rank_base + rank].z;
  uint local = position - c.index_base;
  if (local >= c.index_count) return;
  Offsets at = KeptOffsets(sequence);
  Values[c.output_base + at.output + rank * c.reduced[0].output_stride] =
      LoadElement(c.input_base + at.input, local);
#if INDEX_WIDE
  Indices[c.output2_base + at.index + rank * c.reduced[0].index_stride] = uint2(position, 0);
#else
  Indices[c.output2_base + at.index + rank * c.reduced[0].index_stride] = position;
#endif
}

#endif
