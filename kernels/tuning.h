// Numbers that decide speed, beside those of the device (PlanOptions). docs/performance.md has what
// was measured, also what did not help.
#ifndef OPMILL_KERNELS_TUNING_H_
#define OPMILL_KERNELS_TUNING_H_

#include <cstdint>

namespace opmill::tuning {

// Steps that one lane takes at most before a result is split over more groups. It bounds the time
// of a group and the error of a sum (three levels of 8), and stays far below the 65535 rounds after
// which some drivers end a loop.
inline constexpr uint64_t kMaxLaneItems = 512;

// A lane takes at least so many steps before other lanes of its group join in to fill the device.
inline constexpr uint64_t kMinLaneItems = 8;

// Likewise before other groups do: they cost a second pass, so that small tensors do without.
inline constexpr uint64_t kMinSplitItems = 128;

// Software devices: steps that one lane walks alone before other lanes of its group join in, where
// there are rows enough to fill the device.
inline constexpr uint64_t kLoneLaneItems = 256;

// Candidates that one lane keeps sorted in registers. For k up to this a lane walks longer runs and
// no merge follows. A bitonic network in the memory of a group was 30 times slower on lavapipe,
// which serves that memory lane by lane (docs/performance.md).
inline constexpr uint64_t kMaxLaneKeep = 16;

// Candidates that such a lane walks at most.
inline constexpr uint64_t kMaxLaneCandidates = 1024;

// Records that one lane merges.
inline constexpr uint64_t kMergeChunk = 32;  // MERGE_CHUNK in top_k.hlsl

// Sequences up to this length are sorted whole: a tournament would cost more passes than it saves.
inline constexpr uint64_t kMinTournament = 64;

// Elements behind one champion at most.
inline constexpr uint64_t kMaxBlockElements = 4096;

// Records in scratch at a time, top_k's candidates or what splits leave to combine: 256 MiB.
inline constexpr uint64_t kMaxListRecords = uint64_t{1} << 24;

}  // namespace opmill::tuning

#endif  // OPMILL_KERNELS_TUNING_H_
