// Constants that determine performance, in addition to those of the device (PlanOptions). Each has
// one line of evidence. "Read" is the speed of a kernel that only reads the input; times are of
// lavapipe. docs/notes/tuning.md has all measurements, and docs/notes/ also what did not help.
#ifndef OPMILL_KERNELS_PLAN_TUNING_H_
#define OPMILL_KERNELS_PLAN_TUNING_H_

#include <cstdint>

#include "shaders/reduction_constants.h"

namespace opmill::tuning {

// Rows: the most steps of one lane before a result is split over more groups. Bounds the time of a
// group and the error of a sum (blocks of 2, chains of 32 blocks, 32 chains: reduction.hlsli), and
// stays below 65535 rounds, after which some drivers end a loop.
// 512 -> 2048: SUM over all axes of [8192,8192] 0.67 -> 1.00 of the read, by processor time.
inline constexpr uint64_t kMaxLaneItems = 2048;

// The same for columns, where consecutive groups share the pages of their rows.
// SUM over axis 0 of [8192,4096]: 256, 512, 1024 -> 0.59, 0.64, 0.63 of the read.
inline constexpr uint64_t kMaxColumnItems = 512;

// Software devices, columns in tiles: the most vectors of a tile.
// SUM over axis 0 of [8192,8192]: without tiles 0.45 of the read, with tiles 0.69.
inline constexpr uint64_t kMaxTileVectors = TILE_VECTORS;

// The most rows of one lane in tiles; row_part.hlsli counts them in 16 bits.
// 1024 -> 2048: MAX over axis 1 of [64,2048,1024] INT8 0.50 -> 0.64 of the read (no second pass).
inline constexpr uint64_t kMaxTileItems = 2048;
static_assert(kMaxTileItems < 0xFFFF);

// The fewest rows for which tiles are used.
// Not measured alone; the next value shows the gain for fewer rows that are wide.
inline constexpr uint64_t kMinTileItems = 65;

// The same if the rows fill tiles for all lanes.
// 65 -> 48: MAX over axis 0 of [64,262144] FLOAT32 10.4 -> 5.1 ms, of [48,349440] 7.7 -> 5.5 ms.
inline constexpr uint64_t kMinWideTileItems = 48;

// The same for positions of narrow elements (row_part.hlsli): always, because tiles are faster.
// argmax over axis 0 of [20,1048576] FLOAT16: 11.7 ms without tiles, 7.3 with.
inline constexpr uint64_t kMinRowPartItems = 2;

// Rows of a tile that are read for one vector before the next vector. More rows reload the states
// less often, but a processor prefetches on few pages at a time.
// 32 -> 16: SUM over axis 0 of [8192,8192] FLOAT16 0.34 -> 0.42 of the read (Xeon of 2023).
inline constexpr uint64_t kTileRows = 16;

// The same for rows of at most kMaxCloseRowBytes, which lie on few pages.
// 32 -> 16: argmax over axis 1 of [64,2048,1024] INT8 0.32 -> 0.25 of the read (Xeon of 2023).
inline constexpr uint64_t kCloseTileRows = 32;
inline constexpr uint64_t kMaxCloseRowBytes = 2048;

// The most records of splits that one lane combines.
// Not sensitive: 32 or 128 records per lane instead of 8 made no difference.
inline constexpr uint64_t kMaxLaneRecords = 512;

// The fewest steps of a lane before other lanes of its group share its result.
// Not measured alone; fewer steps cost less than combining the lanes.
inline constexpr uint64_t kMinLaneItems = 8;

// The fewest steps before other groups share a result, which needs a second pass.
// Not measured alone; keeps small tensors in one pass.
inline constexpr uint64_t kMinSplitItems = 128;

// Software devices: the most steps of one lane before other lanes of its group share its row, if
// there are enough rows to fill the device. Sharing costs as much as 400 loads.
// 256 -> 2048: SUM over axis 1 of [8192,4096] 0.55 -> 0.83 of the read.
inline constexpr uint64_t kLoneLaneItems = 2048;

// Software devices: a lane takes several units with few steps, up to this many steps in all,
// because a group costs half a microsecond.
// None, 64, 256, 1024: SUM over axis 1 of [4194304,4] 58.6, 22.5, 21.8, 21.2 ms.
inline constexpr uint64_t kMinTurnItems = 1024;

// Software devices: units of up to this many steps use a kernel without a loop.
// None -> 8: SUM over axis 1 of [4194304,4] 24 -> 10 ms (Zen 4).
inline constexpr uint64_t kMaxFewItems = MOST_ITEMS;

// Software devices: lanes that share a row read stretches of at least kMinStretchItems, because
// processors read several streams faster than one. Stretches start an odd number of cache lines
// apart; at a multiple of 4 KiB they would fall into the same cache set.
// SUM over all axes of [8192,8192]: 28.9 ms interleaved, 14.7 in stretches (Xeon of 2023).
inline constexpr uint64_t kMinStretchItems = 64;
inline constexpr uint64_t kLineItems = 4;

// The most records in scratch at a time: partial results of splits.
// Not measured; limits scratch to 256 MiB.
inline constexpr uint64_t kMaxListRecords = uint64_t{1} << 24;

}  // namespace opmill::tuning

#endif  // OPMILL_KERNELS_PLAN_TUNING_H_
