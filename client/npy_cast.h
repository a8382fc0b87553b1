// Converts the elements of a .npy file to another type.
#ifndef OPMILL_CLIENT_NPY_CAST_H_
#define OPMILL_CLIENT_NPY_CAST_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/npy.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

// Checks whether the dtype can be converted to `to` at all: floats are not converted to integers.
// The error is InvalidArgument with a sentence.
absl::Status CheckCast(const NpyDtype& from, v1::DataType to);

// Converts the `elements` of an array with this header, in order, to `out`, which must have room
// for them. Conversions to a float round to nearest, ties to even; NaN and infinities are
// preserved. Returns InvalidArgument with the first value that does not fit: an integer outside the
// range of `to`, or a finite value that would become infinite.
absl::Status CastElements(const NpyHeader& header, absl::Span<const std::byte> elements,
                          v1::DataType to, std::byte* out);

// The bits of the nearest half-precision float, ties to even.
uint16_t HalfOf(double value);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_CAST_H_
