// Cases with a name and a reason, beside those that are made.
#ifndef OPMILL_TESTS_CONFORMANCE_NAMED_CASES_H_
#define OPMILL_TESTS_CONFORMANCE_NAMED_CASES_H_

#include "absl/types/span.h"

namespace opmill {

struct NamedCase {
  const char* name;
  const char* line;
};

absl::Span<const NamedCase> Regressions();  // what broke once
absl::Span<const NamedCase> SetsOfAxes();   // none, and some twice: DirectML takes both
// Sums that a device may get wrong.
absl::Span<const NamedCase> Additions();
// Each way that top_k takes, on values that lead it there.
absl::Span<const NamedCase> TopKPaths();

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_NAMED_CASES_H_
