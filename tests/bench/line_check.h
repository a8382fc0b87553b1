// Checks an operator's outputs over a large tensor by a sample: some of the lines that it reduces,
// recomputed by the reference.
#ifndef OPMILL_TESTS_BENCH_LINE_CHECK_H_
#define OPMILL_TESTS_BENCH_LINE_CHECK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// Returns the first mistake, or "". `validated` must have packed tensors.
std::string FindMistakeInLines(const OperatorDesc& validated, absl::Span<const std::byte> input,
                               const std::vector<absl::Span<const std::byte>>& outputs);

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_LINE_CHECK_H_
