// The cases of the conformance test: a systematic table, and random ones without end.
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
  kScaled,         // no two elements side by side
  kSliding,        // every stride 1: elements shared by many positions
  kStridedOutput,  // with gaps, or transposed
};
inline constexpr uint32_t kStridePatternCount = 7;

// kShort takes a quarter of the functions, other ones for every type.
enum class Table : uint32_t { kShort, kFull };

// Every operator and function that takes `type`, over every axis pattern and every length around a
// boundary that planners and kernels know; strides, values, directions, index types and plan
// options take turns, so that every two of them meet. `own` are the device's own plan options.
std::vector<ConformanceCase> SystematicCases(DataType type, const PlanOptions& own,
                                             Table table = Table::kFull);

// One case of any operator and shape.
ConformanceCase RandomCase(uint64_t seed, const PlanOptions& own);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_CASE_GENERATOR_H_
