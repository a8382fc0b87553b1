// Exact results of reductions of floats.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_REFERENCE_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {

// One result of a float reduction before it is rounded, with the values that determine its error
// bound. A term is what the function sums or multiplies: x, |x|, x^2 or e^(x - maximum).
struct ExactReduction {
  double value = 0;              // of the function
  double sum = 0;                // of the terms; for MULTIPLY, their product
  double sum_of_magnitudes = 0;  // of the terms
  double largest_term = 0;       // by magnitude
  double maximum = 0;            // LOG_SUM_EXP: the value that is subtracted; otherwise 0
  uint64_t count = 0;            // of the terms
};

// The results in row-major order of the output. Returns InvalidArgument unless the input is a float
// and the function is one of AVERAGE, L1, L2, LOG_SUM, LOG_SUM_EXP, MULTIPLY, SUM, SUM_SQUARE.
absl::StatusOr<std::vector<ExactReduction>> ReferenceReduceExact(const ReduceDesc& validated,
                                                                 absl::Span<const std::byte> input);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_REFERENCE_H_
