// Numbers that decide speed, beside those of the device (PlanOptions). docs/notes/ has what was
// measured, also what did not help.
#ifndef OPMILL_KERNELS_PLAN_TUNING_H_
#define OPMILL_KERNELS_PLAN_TUNING_H_

#include <cstdint>

#include "shaders/reduction_constants.h"
#include "shaders/top_k_constants.h"

namespace opmill::tuning {

// Steps that one lane of a row takes at most before a result is split over more groups. It bounds
// the time of a group and the error of a sum (blocks of 2, chains of 32 blocks, 32 chains: see
// reduction.hlsli), and stays far below the 65535 rounds after which some drivers end a loop.
inline constexpr uint64_t kMaxLaneItems = 2048;

// Likewise of columns, where groups that follow one another share these rows' pages. 256, 1024:
// 0.59, 0.63 of the read for SUM over axis 0 of [8192,4096]; 512: 0.64.
inline constexpr uint64_t kMaxColumnItems = 512;

// Software devices: vectors of columns that a lane walks in one tile at most, and rows that it
// walks at most, which row_part.hlsli counts in 16 bits. Tiles took SUM and argmax over axis 0 of
// [8192,8192] FLOAT32 from 0.45 and 0.26 of the read to 0.69 and 0.48; 1024 -> 2048 rows MAX over
// axis 1 of [64,2048,1024] INT8 from 0.50 to 0.64: no second pass.
inline constexpr uint64_t kMaxTileVectors = TILE_VECTORS;
inline constexpr uint64_t kMaxTileItems = 2048;
static_assert(kMaxTileItems < 0xFFFF);

// Likewise: rows below which a lane does without tiles, and below which also where rows fill tiles
// for all lanes. 65 -> 48 rows took MAX and argmax over axis 0 of [64,262144] FLOAT32 from 10.4 and
// 17 ms to 5.1 and 10.8, of [48,349440] from 7.7 and 11.6 to 5.5 and 13.2. Positions of narrow
// elements are found faster in tiles however few the rows are (row_part.hlsli): argmax of FLOAT16
// over axis 0 of [64,524288] took 30 ms without and 7.5 with, of [20,1048576] 11.7 and 7.3, of
// [4,8388608] 49 and 36.
inline constexpr uint64_t kMinTileItems = 65;
inline constexpr uint64_t kMinWideTileItems = 48;
inline constexpr uint64_t kMinRowPartItems = 2;

// Rows of a tile that are walked of one vector before the next: more make states wait less often,
// but a processor fetches ahead on few pages at a time. 32 -> 16 rows took SUM and argmax over axis
// 0 of [8192,8192] FLOAT16 from 0.34 and 0.36 of the read to 0.42 and 0.43, of [8192,16384] INT8
// MAX and argmax from 0.28 and 0.25 to 0.37 and 0.33; but argmax over axis 1 of [64,2048,1024]
// INT8, whose rows are close together, from 0.32 to 0.25. (A Xeon of 2023.)
inline constexpr uint64_t kTileRows = 16;
inline constexpr uint64_t kCloseTileRows = 32;
inline constexpr uint64_t kMaxCloseRowBytes = 2048;

// Tiles of top_k's first reading: sets of four words that a lane keeps of its vectors at most.
// Tiles took k=10 over axis 0 of [8192,8192] FLOAT32 from 88 to 49 ms on a Xeon of 2023, where a
// lane had taken 4 vectors of all of a block's rows; tiles of 16 vectors, not 32: 57.
inline constexpr uint64_t kMaxTileSets = TOP_K_TILE_SETS;

// Records of splits that one lane combines at most.
inline constexpr uint64_t kMaxLaneRecords = 512;

// A lane takes at least so many steps before other lanes of its group join in to fill the device.
inline constexpr uint64_t kMinLaneItems = 8;

// Likewise before other groups do: they cost a second pass, so that small tensors do without.
inline constexpr uint64_t kMinSplitItems = 128;

// Software devices: steps that one lane walks alone before other lanes of its group join in, where
// there are rows enough to fill the device. A group whose lanes share costs as much as 400 loads:
// 256 -> 2048 took SUM over axis 1 of [8192,4096] from 0.55 to 0.83 of the read.
inline constexpr uint64_t kLoneLaneItems = 2048;

// Software devices: where units take fewer steps a lane takes several, up to so many steps in all,
// for a group costs half a microsecond whatever it does. None -> 64 -> 256 -> 1024 steps took SUM
// over axis 1 of [4194304,4] FLOAT32 from 58.6 to 22.5, 21.8 and 21.2 ms, of [262144,64] from 6.6
// to 4.8, 4.3 and 4.1, of [65536,256] from 3.5 to 3.7, 3.1 and 2.9.
inline constexpr uint64_t kMinTurnItems = 1024;

// Likewise, units of no more steps than these are walked without a loop, by a kernel of their own.
// None -> 8 took SUM, LOG_SUM_EXP and argmax over axis 1 of [4194304,4] FLOAT32 from 24, 87 and 40
// ms to 10, 21 and 13, of [524288,32] from 5.9, 16 and 10 to 3.8, 9.5 and 5.6, argmax over axis 0
// of [8,2097152] from 18 to 13. (A Zen 4.)
inline constexpr uint64_t kMaxFewItems = MOST_ITEMS;

// Software devices: lanes that share a row take stretches of it, at least so long, where processors
// read several streams faster than one. An odd number of lines apart, for at a multiple of 4 KiB
// they would meet in one set of a cache.
inline constexpr uint64_t kMinStretchItems = 64;
inline constexpr uint64_t kLineItems = 4;

// Candidates that one lane keeps sorted in registers. For k up to this a lane walks longer runs and
// no merge follows. 16 -> 32 took k=32 over axis 1 of [64,1024,1024] FLOAT32 from 455 to 343 ms, of
// [65536,128] from 375 to 147. A bitonic network in the memory of a group was 30 times slower on
// lavapipe, which serves that memory lane by lane (docs/notes/top-k.md).
inline constexpr uint64_t kMaxLaneKeep = TOP_K_MOST_KEPT;
static_assert(kMaxLaneKeep <= 32, "KeepBest has a bit for each block of a run");

// Software devices: likewise of the blocks of long rows, where lanes can select alone: k=17 and 32
// over axis 1 of [8192,8192] take 36 and 62 ms kept and 34 and 45 selected, k=10 27 and 29; but
// over axis 0 51 and 66, and 142 and 149.
inline constexpr uint64_t kMaxRowKeep = 16;

// Candidates that such a lane walks at most.
inline constexpr uint64_t kMaxLaneCandidates = 4096;

// Software devices: and at least, if there are as many, for a pass more costs as much. 4 k -> 1024
// took k=5 of [1,1000] from 0.5 to 0.25 ms, k=32 of [32,1024] from 0.9 to 0.35, k=10 of [16,50257]
// from 1.1 to 0.7.
inline constexpr uint64_t kMinLaneCandidates = 1024;

// Records that one lane merges in one go. Its neighbours stand next to it: 256, which is 4 KiB from
// lane to lane, made the late merges of top_k k=1000 six times slower on lavapipe.
inline constexpr uint64_t kMergeChunk = TOP_K_MERGE_CHUNK;

// Of such chunks, of results that a lane writes, and of windows of elements that it tests where it
// does not select alone, so many follow one another at most: a group costs a software device half a
// microsecond.
inline constexpr uint64_t kMaxLaneChunks = 8;
inline constexpr uint64_t kMaxLaneResults = 64;
inline constexpr uint64_t kMaxLaneWindows = 63;

// Places over which a group spreads what was selected of a sequence, to sort it, and how many
// candidates it takes for each: with more, too many meet in a place, and runs are merged instead.
// Merges alone took top_k k=5000 of [1024,50257] from 0.6 to 6.9 s (lavapipe).
inline constexpr uint64_t kMaxPlaces = TOP_K_MOST_PLACES;
inline constexpr uint64_t kMaxOfPlace = 4;

// Sequences up to this length are walked whole: a tournament of blocks would cost more passes than
// it saves, in columns from fewer on, whose blocks are read in tiles. 64 -> 1024 took rows of 256
// FLOAT32 elements, k=2, from 13.8 to 8.9 ms, of 512, k=10, from 11.8 to 9.6; columns of 128, k=4,
// 36 -> 22, but of 256, k=2, 96 -> 145. For hardware, whose lanes read side by side, a guess.
inline constexpr uint64_t kMinTournament = 1024;
inline constexpr uint64_t kMinColumnTournament = 128;
inline constexpr uint64_t kMinWideTournament = 64;

// Sequences are ranked, each element beside all others, where their length squared is up to so many
// times k. Beside a lane's own selection, ranked or not, k=64 and 34 of [32768,256] FLOAT32 took 97
// and 81 ms, 135 and 55; k=180 and 128 of [16384,512] 157 and 143, 176 and 131; INT64 k=128 and 100
// of [16384,256] 136 and 130, 172 and 114; elements apart, k=64 over axis 0 of [128,65536] and
// [256,32768] 152 and 179, 179 and 138. Beside runs and merges, all of [4096,3000] and [2048,4096]
// 907 and 836 ms, 1114 and 751; INT64 of [4096,1024] 390 and 363; apart, k=600 of [1024,8192] 878
// and 766. (lavapipe; for hardware, whose cuts are others, a guess.)
// And on software devices where all sequences have so few pairs of elements that passes cost as
// much: one kernel is compiled then, not five. 100 of [1,1000] take 0.17 ms ranked and 0.26 cut, 60
// of [1,1400] 0.21 and 0.21, 40 of [1,2000] 0.21 and 0.21; INT64 40 of [4,500] 0.23 and 0.26.
struct RankWorth {
  uint64_t beside_cuts;
  uint64_t beside_sorts;
  uint64_t hardware;
  uint64_t few_pairs;
};
inline constexpr RankWorth kRankWorth = {1500, 3500, 2500, 2 << 20};
inline constexpr RankWorth kWideRankWorth = {580, 850, 850, 1 << 19};
inline constexpr RankWorth kFarRankWorth = {450, 1500, 1500, 1 << 20};

// Software devices: a lane selects from a sequence alone, and what it leaves is ranked likewise,
// for up to so many ranks, where one of so many lanes that fill the device has a sequence, or where
// a sequence has so few blocks; elsewhere a group's lanes share a sequence, and what they leave is
// spread over places. k=1000, 300 and 100 over axis 1 of [8192,8192] FLOAT32 took 684, 269 and 124
// ms spread and 690, 180 and 77 ranked, of [64,1024,1024] k=100 920 and 475; k=100 of [64,50257],
// [8,50257] and [1,50257] 2.7, 1.09 and 0.63 and 1.9, 0.69 and 0.46, of [1,67108864] 14 and 25.
// INT64 k=500 and 300 of [4096,8192] 261 and 170, 330 and 165.
inline constexpr uint64_t kMaxRankedSelection = 1024;
inline constexpr uint64_t kMaxWideRankedSelection = 320;
inline constexpr uint64_t kLoneLanes = 32;
inline constexpr uint64_t kMaxLoneKeys = 2048;
inline constexpr uint64_t kMaxLoneWindows = 32768;  // rounds of a loop, as for kMaxLaneItems

// Of sequences up to this length up to half of the elements are found by cuts, not by sorting all:
// k=300, 512 and 1000 of [4096,2048] FLOAT32 take 114, 233 and 422 ms in place of 605, 710 and 733;
// but k=2048 would take 1097 in place of 853.
inline constexpr uint64_t kMaxHalved = uint64_t{1} << 20;

// Comparing the key of a block costs as much as testing so many elements against a threshold; less
// beside those of columns, which lie pages apart: k=10 over axis 0 of [8192,8192] FLOAT32 took 49
// ms with blocks of 128 and 45 with 64, over axis 1 32 and 35 (lavapipe; for hardware a guess).
inline constexpr double kKeyWorth = 8;
inline constexpr double kColumnKeyWorth = 4;

// Likewise where a cut is searched among them, in several readings of each.
inline constexpr double kSelectWorth = 32;

// Bytes that a group of top_k reads where there are enough of them: starting a group costs.
inline constexpr uint64_t kGroupBytes = 64 << 10;

// Elements behind one champion at most, and, where lanes keep the best, at least.
inline constexpr uint64_t kMinBlockElements = 16;
inline constexpr uint64_t kMaxBlockElements = 4096;

// Records in scratch at a time, top_k's candidates or what splits leave to combine: 256 MiB.
inline constexpr uint64_t kMaxListRecords = uint64_t{1} << 24;

// Likewise of all lists that top_k sorts with, 128 MiB: they pass many times through the
// processor's caches. Four times as many are no faster for k=1000 over axis 1 of [1024,50257]
// (lavapipe).
inline constexpr uint64_t kMaxSortedRecords = uint64_t{1} << 23;

}  // namespace opmill::tuning

#endif  // OPMILL_KERNELS_PLAN_TUNING_H_
