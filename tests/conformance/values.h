// The element values of conformance cases.
#ifndef OPMILL_TESTS_CONFORMANCE_VALUES_H_
#define OPMILL_TESTS_CONFORMANCE_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// For patterns that apply only to floats, integers get the closest equivalent.
enum class ValuePattern : uint32_t {
  kTies,           // integers of five values
  kSmallIntegers,  // up to 100
  kNumbers,        // with fractions, both signs, up to 100
  kPositive,       // as kNumbers, above 0
  kRandomBits,     // any bits, including NaNs
  kSpecials,       // NaNs of both signs and several payloads, zeros, infinities, denormals, limits
  kDenormals,      // and zeros
  kZeros,          // of both signs
  kConstant,       // the same number everywhere
  kAscending,
  kDescending,
  kExtremes,     // the largest of both signs, and one
  kOverflow,     // large and positive: sums overflow, means do not
  kOneThenTiny,  // each far below the last bit of the first
  kHalfSteps,  // a large one, then steps; 1, 2, ... or 512 of them have the largest rounding error
  kOneLarge,   // somewhere among small ones
  kRareNans,
  kRareInfinities,
  kNegativeInfinity,  // everywhere, or nearly
  kFactors,           // no product of any of them, in any order, over- or underflows
};
inline constexpr uint32_t kValuePatternCount = 20;

absl::string_view ToString(ValuePattern pattern);
std::optional<ValuePattern> ParseValuePattern(absl::string_view text);

// True when the elements, their squares and their sums up to 2^24 are integers.
bool HoldsIntegers(ValuePattern pattern);

// `size_bytes` of elements, including gaps. `reduced_count` elements are reduced to one result.
std::vector<std::byte> MakeValues(ValuePattern pattern, DataType type, uint64_t size_bytes,
                                  uint64_t reduced_count, uint64_t seed);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_VALUES_H_
