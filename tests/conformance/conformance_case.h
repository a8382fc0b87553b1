// One case of the conformance test as data, and as a line of text that reproduces it.
#ifndef OPMILL_TESTS_CONFORMANCE_CONFORMANCE_CASE_H_
#define OPMILL_TESTS_CONFORMANCE_CONFORMANCE_CASE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/plan.h"
#include "tests/conformance/values.h"

namespace opmill {

struct ConformanceCase {
  OperatorDesc desc;  // validated
  ValuePattern values = ValuePattern::kTies;
  uint64_t seed = 0;
  // max_scratch_bytes is always the default.
  PlanOptions options;
};

// "argmax input=FLOAT32[2,3]/[4,1] output=UINT32[2,1] axes=1 axis_direction=DECREASING
// values=ties seed=7 view=1024 groups=4 threads=64", on one line.
std::string ToLine(const ConformanceCase& c);
absl::StatusOr<ConformanceCase> ParseLine(absl::string_view line);

using Inputs = std::vector<std::vector<std::byte>>;
// One for each input of the operator.
Inputs MakeInputs(const ConformanceCase& c);

// True for float functions whose result depends on the order of rounding.
bool IsInexact(const OperatorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_CONFORMANCE_CASE_H_
