// Every operator, computed in a slow and obvious way on the host: nested loops over coordinates, no
// plans, no vectors. The expected results of the tests, and the implementation of the reference
// device.
//
// Decisions where DirectML's documentation is silent:
//   - MIN and MAX: any NaN gives the canonical quiet NaN; -0 is below +0, so that the result does
//     not depend on the order of elements.
//   - argmin, argmax, hardmax: a NaN is picked before any number; -0 equals +0.
//   - top_k: NaN is above +inf, all NaNs are equal, -0 equals +0; values keep their own bits.
//   - element_wise_add: one addition, rounded once; denormals are kept, a NaN result is canonical.
//   - Other float functions accumulate in compensated double precision. A NaN result is canonical.
//     FLOAT16 results are rounded to FLOAT32 first and from there to FLOAT16, as on a device that
//     accumulates in FLOAT32.
//   - L2: the sum of squares is a FLOAT32, so it may overflow to inf before the root.
//   - Integers wrap.
//   - The gaps of a strided output are zero.
#ifndef OPMILL_KERNELS_OPERATORS_OPERATOR_REFERENCE_H_
#define OPMILL_KERNELS_OPERATORS_OPERATOR_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"

namespace opmill {

// `validated` must have passed Validate. Spans hold at least the bytes that their tensors require;
// further bytes of an output span are not changed. Returns InvalidArgument if a span is missing or
// too short, and Cancelled after a stop of `abandoned`, which is checked at every element, but not
// while a sequence is sorted.
absl::Status ReferenceRun(const OperatorDesc& validated,
                          absl::Span<const absl::Span<const std::byte>> inputs,
                          absl::Span<const absl::Span<std::byte>> outputs,
                          const std::stop_token& abandoned = {});

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_OPERATOR_REFERENCE_H_
