// Every operator, computed slowly and obviously on the host: nested coordinates, no plan, no
// vectors. The oracle of the tests and what the reference device runs.
//
// What it decides where DirectML's pages are silent:
//   - MIN and MAX: any NaN gives the canonical quiet NaN; -0 is below +0, so that the answer does
//     not depend on the order of elements.
//   - argmin, argmax, hardmax: a NaN is picked before any number; -0 equals +0.
//   - top_k: NaN is above +inf, all NaNs are equal, -0 equals +0; values keep their own bits.
//   - element_wise_add: one addition, rounded once; denormals are kept, a NaN result is canonical.
//   - Other float functions accumulate in compensated double precision. A NaN result is canonical.
//     FLOAT16 results are rounded to FLOAT32 first and from there to FLOAT16, as a device that
//     accumulates in FLOAT32 rounds them.
//   - L2: the sum of squares is a FLOAT32, so it overflows to inf there, before the root.
//   - Integers wrap.
//   - The gaps of a strided output are zero.
#ifndef OPMILL_KERNELS_REFERENCE_REFERENCE_OPERATORS_H_
#define OPMILL_KERNELS_REFERENCE_REFERENCE_OPERATORS_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {

// `validated` has passed Validate. Spans hold at least the bytes that their tensors require; what
// an output span has beyond them is left alone. InvalidArgument when a span is missing or short.
// Cancelled after a stop of `abandoned`, for which it looks at every element, but not while it
// sorts a sequence.
absl::Status ReferenceRun(const OperatorDesc& validated,
                          absl::Span<const absl::Span<const std::byte>> inputs,
                          absl::Span<const absl::Span<std::byte>> outputs,
                          const std::stop_token& abandoned = {});

// One result of a float reduction before it is rounded, and what bounds of its error are made of.
// A term is what the function sums or multiplies: x, |x|, x^2 or e^(x - maximum).
struct ExactReduction {
  double value = 0;              // of the function
  double sum = 0;                // of the terms; MULTIPLY: their product
  double sum_of_magnitudes = 0;  // of the terms
  double largest_term = 0;       // by magnitude
  double maximum = 0;            // LOG_SUM_EXP: what is subtracted; else 0
  uint64_t count = 0;            // of the terms
};

// In row-major order of the output. The function is one of AVERAGE, L1, L2, LOG_SUM, LOG_SUM_EXP,
// MULTIPLY, SUM, SUM_SQUARE and the input a float, else InvalidArgument.
absl::StatusOr<std::vector<ExactReduction>> ReferenceReduceExact(const ReduceDesc& validated,
                                                                 absl::Span<const std::byte> input);

}  // namespace opmill

#endif  // OPMILL_KERNELS_REFERENCE_REFERENCE_OPERATORS_H_
