// What the elements of a conformance case hold.
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

// Where a pattern speaks of floats only, integers get the nearest thing that they have.
enum class ValuePattern : uint32_t {
  kTies,           // integers of five values
  kSmallIntegers,  // up to 100
  kNumbers,        // with fractions, both signs, up to 100
  kPositive,       // as kNumbers, above 0
  kRandomBits,     // everything a type has, NaNs with it
  kSpecials,       // NaNs of both signs and several payloads, zeros, infinities, denormals, ends
  kDenormals,      // and zeros
  kZeros,          // of both signs
  kConstant,       // one number everywhere
  kAscending,
  kDescending,
  kExtremes,     // the largest of both signs, and one
  kOverflow,     // large and positive: sums pass the largest number, means do not
  kOneThenTiny,  // each far below the last bit of the first
  kHalfSteps,  // a large one, then steps of which 1, 2, ... or 512 round it up by the most they can
  kOneLarge,   // somewhere among small ones
  kRareNans,
  kRareInfinities,
  kNegativeInfinity,  // everywhere, or nearly
  kFactors,           // whose product, of any of them in any order, neither over- nor underflows
};
inline constexpr uint32_t kValuePatternCount = 20;

absl::string_view ToString(ValuePattern pattern);
std::optional<ValuePattern> ParseValuePattern(absl::string_view text);

// True when the elements, their squares and their sums up to 2^24 are integers.
bool HoldsIntegers(ValuePattern pattern);

// `size_bytes` of elements, gaps included. `reduced_count` elements make one result.
std::vector<std::byte> MakeValues(ValuePattern pattern, DataType type, uint64_t size_bytes,
                                  uint64_t reduced_count, uint64_t seed);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_VALUES_H_
