// Generates the cases of the conformance test: a systematic table, and any number of random ones.
#ifndef OPMILL_TESTS_CONFORMANCE_CASE_GENERATOR_H_
#define OPMILL_TESTS_CONFORMANCE_CASE_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "kernels/descriptor/tensor.h"
#include "kernels/plan/plan.h"
#include "tests/conformance/conformance_case.h"

namespace opmill {

enum class AxisPattern : uint32_t { kLast, kFirst, kMiddle, kAll, kOuterTwo, kScattered };
inline constexpr uint32_t kAxisPatternCount = 6;

enum class StridePattern : uint32_t {
  kPacked,
  kPadded,
  kTransposed,
  kBroadcast,
  kScaled,         // no two adjacent elements
  kSliding,        // every stride 1: positions share elements
  kStridedOutput,  // with gaps, or transposed
};
inline constexpr uint32_t kStridePatternCount = 7;

// Covers every operator and function that supports `type`, every axis pattern, and every length
// around a boundary in planners and kernels. Strides, values, directions, index types and plan
// options vary so that every pair of them occurs. `own` are the device's own plan options.
std::vector<ConformanceCase> SystematicCases(DataType type, const PlanOptions& own);

// A random case of any operator and shape.
ConformanceCase RandomCase(uint64_t seed, const PlanOptions& own);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_CASE_GENERATOR_H_
