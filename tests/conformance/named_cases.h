// Handwritten cases, each with a name and a reason.
#ifndef OPMILL_TESTS_CONFORMANCE_NAMED_CASES_H_
#define OPMILL_TESTS_CONFORMANCE_NAMED_CASES_H_

#include "absl/types/span.h"

namespace opmill {

struct NamedCase {
  const char* name;
  const char* line;
};

absl::Span<const NamedCase> Regressions();  // past bugs
absl::Span<const NamedCase> SetsOfAxes();   // empty, and with duplicates: DirectML accepts both
// Sums that are easy to get wrong.
absl::Span<const NamedCase> Additions();
// Every path of top_k, with values that select it.
absl::Span<const NamedCase> TopKPaths();

}  // namespace opmill

#endif  // OPMILL_TESTS_CONFORMANCE_NAMED_CASES_H_
