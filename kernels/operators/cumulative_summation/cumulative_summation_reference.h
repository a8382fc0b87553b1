// Exact results of cumulative_summation for floats.
#ifndef OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_REFERENCE_H_
#define OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_REFERENCE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/reduction/reduction_reference.h"

namespace opmill {

// The unrounded results, in row-major order of the output. `validated` must have a float type.
std::vector<ExactReduction> ExactCumulativeSums(const CumulativeSummationDesc& validated,
                                                absl::Span<const std::byte> input);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_CUMULATIVE_SUMMATION_CUMULATIVE_SUMMATION_REFERENCE_H_
