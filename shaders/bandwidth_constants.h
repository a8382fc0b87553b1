// Shared by C++ and HLSL: bandwidth.hlsl, the benchmark's kernels.
#ifndef OPMILL_SHADERS_BANDWIDTH_CONSTANTS_H_
#define OPMILL_SHADERS_BANDWIDTH_CONSTANTS_H_

#include "constants.h"

OPMILL_SHARED_BEGIN

struct BandwidthConstants {
  struct GroupConstants groups;
  uint vector_count;  // of the input
  uint lane_vectors;  // that a lane reads
  uint in_stretches;  // 1: each lane reads a stretch of its own; 0: lanes are interleaved
};

OPMILL_SHARED_END

#endif  // OPMILL_SHADERS_BANDWIDTH_CONSTANTS_H_
