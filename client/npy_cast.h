// The elements of a .npy file as another type.
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

// Whether NumPy's dtype can become `to` at all: floats do not become integers. InvalidArgument with
// a sentence else.
absl::Status CheckCast(const NpyDtype& from, v1::DataType to);

// Converts the `elements` of an array with this header, in their order, into `out`, which has room
// for as many of `to`. To a float rounds to nearest, ties to even; NaN and infinities stay what
// they are. InvalidArgument names the first value that does not fit: an integer outside the range
// of `to`, a finite one that would become infinite.
absl::Status CastElements(const NpyHeader& header, absl::Span<const std::byte> elements,
                          v1::DataType to, std::byte* out);

// The nearest half-precision float, ties to even; its bits.
uint16_t HalfOf(double value);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_CAST_H_
