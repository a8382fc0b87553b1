// Constants that determine performance, in addition to those of the device (PlanOptions), each with
// its evidence (docs/notes/gpu-reductions.md, docs/notes/h100.md) or "Not measured".
#ifndef OPMILL_KERNELS_PLAN_TUNING_H_
#define OPMILL_KERNELS_PLAN_TUNING_H_

#include <cstdint>

#include "shaders/reduction_constants.h"

namespace opmill::tuning {

// Items that a lane of a reduction reads at a time (reduction.hlsli), 64 bytes.
inline constexpr uint64_t kTurnItems = 4;

// The fewest items of a lane, if there are as many: 256 lanes of 512 groups keep 8 MB in flight; an
// H200 needs 3.4 (4.8 TB/s, 700 ns). Rows of 256 items, argmin, share of the read speed: 4 -> 0.85,
// 8 -> 0.95, 16 -> 0.97; sum 1.02, 1.01, 1.00 (H100, 2026-11-26).
inline constexpr uint64_t kLaneItems = 8;

// Rows: the fewest lanes that share a row, so that they read adjacent memory, if each has a turn.
// Rows of 16 items, argmin and sum: 1 -> 0.79, 0.80; 2 -> 0.86, 0.88; 4 -> 0.89, 0.96; 8 -> 0.50,
// 0.96 (H100, 2026-11-26).
inline constexpr uint64_t kMinRowLanes = 4;

// Columns: units that adjacent lanes take, 512 bytes; the other lanes of a group share them.
// Not measured.
inline constexpr uint64_t kAdjacentUnits = 32;

// The most items of one lane before a result is split over more groups; within what arg_reduce
// counts, and below 65535 rounds, after which some drivers end a loop.
// Not measured for GPUs.
inline constexpr uint64_t kMaxLaneItems = 2048;
static_assert(kMaxLaneItems <= MOST_LANE_ITEMS);

// The same for sums of floats: 32 additions of four items each, one after another, are within the
// bound of any length (docs/operators.md; SumsThatRoundUp of the conformance test).
inline constexpr uint64_t kMaxSummedItems = 128;

// The most records of splits that one lane combines, if there are other lanes in its group: the
// kernel adds as many one after another.
inline constexpr uint64_t kMaxLaneRecords = 16;

// The fewest items of a lane before other groups share its result, which needs a second pass.
// A second pass takes 13 us on an H100. The number was not measured.
inline constexpr uint64_t kMinSplitItems = 16;

// The most records in scratch at a time: partial results of splits. Limits scratch to 256 MiB.
// Not measured.
inline constexpr uint64_t kMaxListRecords = uint64_t{1} << 24;

}  // namespace opmill::tuning

#endif  // OPMILL_KERNELS_PLAN_TUNING_H_
