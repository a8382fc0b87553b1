// Constants that determine performance, in addition to those of the device (PlanOptions). Each has
// one line of evidence. "Read" is the speed of a kernel that only reads the input; times are of
// lavapipe. docs/notes/tuning.md has all measurements, and docs/notes/ also what did not help.
#ifndef OPMILL_KERNELS_PLAN_TUNING_H_
#define OPMILL_KERNELS_PLAN_TUNING_H_

#include <cstdint>

#include "shaders/reduction_constants.h"
#include "shaders/top_k_constants.h"

namespace opmill::tuning {

// Items that a lane of a reduction reads at a time (reduction.hlsli): 64 bytes in flight.
// 256 lanes of 512 groups keep 8 MB in flight; an H200 needs 3.4 (4.8 TB/s, 700 ns).
inline constexpr uint64_t kLaneItems = 4;

// Rows: the fewest lanes that share a row of at least as many items, so that they read whole
// cache lines of 128 bytes. Not measured.
inline constexpr uint64_t kMinRowLanes = 8;

// Columns: units that adjacent lanes take, 512 bytes; the other lanes of a group share them.
// Not measured.
inline constexpr uint64_t kAdjacentUnits = 32;

// The most items of one lane before a result is split over more groups; below the turns that
// arg_reduce counts, and below 65535 rounds, after which some drivers end a loop.
// Not measured for GPUs.
inline constexpr uint64_t kMaxLaneItems = 2048;
static_assert(kMaxLaneItems < MOST_NARROW_TURNS);

// The same for sums of floats: 32 additions of four items each, one after another, are within the
// bound of any length (docs/operators.md; SumsThatRoundUp of the conformance test).
inline constexpr uint64_t kMaxSummedItems = 128;

// The most records of splits that one lane combines, if there are other lanes in its group: a chain
// of the kernel.
inline constexpr uint64_t kMaxLaneRecords = 16;

// The fewest items of a lane before other groups share its result, which needs a second pass.
// A pass costs a few microseconds, as much as a few rounds of loads. Not measured.
inline constexpr uint64_t kMinSplitItems = 16;

// Software devices, top_k of columns: the most vectors of a tile.
// SUM over axis 0 of [8192,8192]: without tiles 0.45 of the read, with tiles 0.69.
inline constexpr uint64_t kMaxTileVectors = 32;

// Software devices, top_k of columns: rows of a tile that are read for one vector before the next.
// 32 -> 16: SUM over axis 0 of [8192,8192] FLOAT16 0.34 -> 0.42 of the read (Xeon of 2023).
inline constexpr uint64_t kTileRows = 16;

// Tiles of top_k's first pass: the most sets of four words that a lane keeps of its vectors.
// 16 -> 32 vectors per tile: k=10 over axis 0 of [8192,8192] 57 -> 49 ms (Xeon of 2023).
inline constexpr uint64_t kMaxTileSets = TOP_K_TILE_SETS;

// Software devices: a lane takes several units with few steps, up to this many steps in all,
// because a group costs half a microsecond.
// None, 64, 256, 1024: SUM over axis 1 of [4194304,4] 58.6, 22.5, 21.8, 21.2 ms.
inline constexpr uint64_t kMinTurnItems = 1024;

// The largest k for which a lane keeps its candidates sorted in registers, without a merge.
// 16 -> 32: k=32 over axis 1 of [64,1024,1024] 455 -> 343 ms, of [65536,128] 375 -> 147.
inline constexpr uint64_t kMaxLaneKeep = TOP_K_MOST_KEPT;
static_assert(kMaxLaneKeep <= 32, "KeepBest has a bit for each block of a run");

// Software devices: the same for the blocks of long rows, in which lanes can select alone.
// Axis 1 of [8192,8192]: k=10 27 ms kept, 29 selected; k=17 36 and 34; k=32 62 and 45.
inline constexpr uint64_t kMaxRowKeep = 16;

// The most candidates of one such lane.
// Not measured alone; far below the 65535 rounds of a loop.
inline constexpr uint64_t kMaxLaneCandidates = 4096;

// Software devices: the fewest candidates of one such lane, because another pass costs as much.
// 4 k -> 1024: k=32 of [32,1024] 0.9 -> 0.35 ms, k=10 of [16,50257] 1.1 -> 0.7.
inline constexpr uint64_t kMinLaneCandidates = 1024;

// Records that one lane merges at once, next to those of the neighboring lane.
// 256 (4 KiB between lanes) made the late merges of k=1000 six times slower.
inline constexpr uint64_t kMergeChunk = TOP_K_MERGE_CHUNK;

// The most chunks, results, and windows of elements (if it does not select alone) of one lane.
// A group costs half a microsecond: 1 -> 64 results took writing for 256 rows, k=1000, 8 -> 0.2 ms.
inline constexpr uint64_t kMaxLaneChunks = 8;
inline constexpr uint64_t kMaxLaneResults = 64;
inline constexpr uint64_t kMaxLaneWindows = 63;

// Places over which a group spreads the selected candidates of a sequence to sort them.
// k=5000 of [1024,50257]: 0.6 s spread, 6.9 s with merges alone. Half the places: no difference.
inline constexpr uint64_t kMaxPlaces = TOP_K_MOST_PLACES;

// The most candidates per place; with more, too many share a place, and runs are merged instead.
// Not measured alone.
inline constexpr uint64_t kMaxOfPlace = 4;

// Sequences of up to this length are read whole, because a tournament of blocks needs more passes.
// 64 -> 1024: k=2 of [65536,256] 13.8 -> 8.9 ms, k=10 of [16384,512] 11.8 -> 9.6.
inline constexpr uint64_t kMinTournament = 1024;

// The same for columns, whose blocks are read in tiles.
// 64 -> 128: columns of 128, k=4, 36 -> 22 ms; but 64 -> 256: columns of 256, k=2, 96 -> 145 ms.
inline constexpr uint64_t kMinColumnTournament = 128;

// The same for hardware, whose lanes read adjacent memory.
// Not measured.
inline constexpr uint64_t kMinWideTournament = 64;

// A sequence is ranked, by comparing each element with all others, if the square of its length is
// at most this many times k. `few_pairs`, on software devices: all sequences are ranked if they
// have at most this many pairs of elements, because one kernel is compiled then, not five.
struct RankWorth {
  uint64_t beside_cuts;   // instead of a cut
  uint64_t beside_sorts;  // instead of runs and merges
  uint64_t hardware;      // not measured
  uint64_t few_pairs;
};
// [32768,256] FLOAT32: k=64 97 ms ranked, 135 cut; k=34 81 and 55. All of [4096,3000]: 907, sorted
// 1114. k=100 of [1,1000]: 0.17, cut 0.26.
inline constexpr RankWorth kRankWorth = {1500, 3500, 2500, 2 << 20};
// [16384,256] INT64: k=128 136 ms ranked, 172 cut; k=100 130 and 114.
inline constexpr RankWorth kWideRankWorth = {580, 850, 850, 1 << 19};
// Elements apart: k=64 over axis 0 of [128,65536] 152 ms ranked, 179 cut; of [256,32768] 179, 138.
inline constexpr RankWorth kFarRankWorth = {450, 1500, 1500, 1 << 20};

// Software devices: the largest k for which a lane selects from a sequence alone and the selected
// candidates are ranked; beyond it a group shares a sequence and spreads its candidates.
// [8192,8192], k=100, 300, 1000: 77, 180, 690 ms ranked, 124, 269, 684 spread.
inline constexpr uint64_t kMaxRankedSelection = 1024;
// [4096,8192] INT64, k=300: 165 ms ranked, 170 spread; k=500: 330 and 261.
inline constexpr uint64_t kMaxWideRankedSelection = 320;

// A lane selects alone if there is one sequence per kLoneLanes lanes of the device, or if a
// sequence has at most kMaxLoneKeys blocks.
// k=100 of [8,50257] 1.09 -> 0.69 ms, of [1,50257] 0.63 -> 0.46, but of [1,67108864] 14 -> 25.
inline constexpr uint64_t kLoneLanes = 32;
inline constexpr uint64_t kMaxLoneKeys = 2048;
inline constexpr uint64_t kMaxLoneWindows = 32768;  // rounds of a loop, as for kMaxLaneItems

// For sequences of up to this length, up to half of the elements are found by cuts instead of
// sorting all of them.
// [4096,2048]: k=300 605 -> 114 ms, k=1000 733 -> 422; but k=2048 would take 853 -> 1097.
inline constexpr uint64_t kMaxHalved = uint64_t{1} << 20;

// The cost of comparing the key of a block, in elements compared with a threshold. Less for
// columns, whose elements are on different pages.
// Axis 0 of [8192,8192], k=10: blocks of 128 49 ms, of 64 45; axis 1: 32 and 35.
inline constexpr double kKeyWorth = 8;
inline constexpr double kColumnKeyWorth = 4;

// The same if a cut is searched among the keys, which reads each of them several times.
// Not measured alone.
inline constexpr double kSelectWorth = 32;

// Bytes that a group of top_k reads if there are enough groups.
// Not measured alone; a group costs half a microsecond to start.
inline constexpr uint64_t kGroupBytes = 64 << 10;

// Elements of a block: the fewest if lanes keep the best, and the most.
// Not measured alone.
inline constexpr uint64_t kMinBlockElements = 16;
inline constexpr uint64_t kMaxBlockElements = 4096;

// The most records in scratch at a time: candidates of top_k, or partial results of splits.
// Not measured; limits scratch to 256 MiB.
inline constexpr uint64_t kMaxListRecords = uint64_t{1} << 24;

// The most records in all lists that top_k sorts with, 128 MiB, which fit the caches better.
// Four times as many are no faster for k=1000 over axis 1 of [1024,50257].
inline constexpr uint64_t kMaxSortedRecords = uint64_t{1} << 23;

}  // namespace opmill::tuning

#endif  // OPMILL_KERNELS_PLAN_TUNING_H_
