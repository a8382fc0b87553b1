// Conversion of the elements of .npy files to another type.
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

// InvalidArgument if arrays of the dtype cannot be cast to `to`: floats are not cast to integers.
absl::Status CheckCast(const NpyDtype& from, v1::DataType to);

// Converts the `elements` of an array with this header to `to` and writes them to `out`, in the
// same order. Floats are rounded to nearest, ties to even; NaN and infinity are kept.
// InvalidArgument names the first value that does not fit: an integer out of range, or a finite
// value that would become infinite.
absl::Status CastElements(const NpyHeader& header, absl::Span<const std::byte> elements,
                          v1::DataType to, std::byte* out);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_CAST_H_
