// Checks a device's outputs: bit by bit where the result is fully specified, otherwise within the
// bound of docs/operators.md.
#ifndef OPMILL_TESTS_CONFORMANCE_CASE_VERDICT_H_
#define OPMILL_TESTS_CONFORMANCE_CASE_VERDICT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/reduction/reduction_reference.h"
#include "tests/conformance/conformance_case.h"

namespace opmill {

using Outputs = std::vector<std::vector<std::byte>>;

// Returns the first mistake, or "". Includes gaps and tails of the outputs. `inputs` hold the
// case's values.
std::string FindMistake(const ConformanceCase& c, const Inputs& inputs, const Outputs& outputs);

// The acceptable results of a float function.
struct Accepted {
  // Before rounding to the output's type. If low > high, no number is accepted.
  double low = 0;
  double high = 0;
  bool nan = false;
  bool infinity = false;  // of either sign, in addition to the interval
};

// Further facts about the terms.
struct TermFacts {
  bool integers = false;         // sums up to 2^24 are exact
  double finite_magnitudes = 0;  // the sum of the terms' magnitudes, without infinities and NaNs
  double logarithms = 0;         // MULTIPLY: the sum of |log2|x|| over finite factors but 0
};

Accepted AcceptedResults(ReduceFunction function, const ExactReduction& exact,
                         const TermFacts& facts);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_CASE_VERDICT_H_
