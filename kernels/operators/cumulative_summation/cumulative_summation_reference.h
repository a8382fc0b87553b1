// The exact results of cumulative_summation on floats.
#ifndef OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_REFERENCE_H_
#define OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_REFERENCE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/reference/reference_operators.h"

namespace opmill {

// Each result before it is rounded, in row-major order of the output. `validated` is of floats.
std::vector<ExactReduction> ExactCumulativeSums(const CumulativeSummationDesc& validated,
                                                absl::Span<const std::byte> input);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_REFERENCE_H_
