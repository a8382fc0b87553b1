// NumPy's .npy files in terms of the contract.
#ifndef OPMILL_CLIENT_NPY_H_
#define OPMILL_CLIENT_NPY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/base/npy.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

// Unspecified if operators do not take the dtype as it is.
v1::DataType DataTypeOf(const NpyDtype& dtype);
// Of one of the ten types.
NpyDtype DtypeOf(v1::DataType type);

// The array as a tensor of an operator; column-major order becomes strides. InvalidArgument if a
// stride does not fit into the descriptor.
absl::StatusOr<v1::TensorDesc> ToTensorDesc(const NpyHeader& header);

// The header of a row-major array. `is_bool`: UINT8 that is 0 or 1.
std::string MakeNpyHeader(v1::DataType data_type, absl::Span<const uint32_t> sizes,
                          bool is_bool = false);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_H_
