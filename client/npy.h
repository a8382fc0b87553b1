// NumPy's .npy files, format 1.0 to 3.0: their header read and written.
#ifndef OPMILL_CLIENT_NPY_H_
#define OPMILL_CLIENT_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

struct NpyHeader {
  v1::DataType data_type = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<uint32_t> sizes;  // 1 to 8
  bool fortran_order = false;
  size_t data_offset = 0;  // in the file
  size_t data_bytes = 0;   // all inside the file

  // The array as an operator's tensor; column-major order becomes strides. Refused where a stride
  // does not fit the descriptor.
  absl::StatusOr<v1::TensorDesc> ToTensorDesc() const;
};

// `file` is a whole file. InvalidArgument, with the reason, for what is no .npy file, is cut off,
// or holds an array that no operator takes.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> file);

// What goes in front of the elements of a row-major array: format 1.0.
std::string MakeNpyHeader(v1::DataType data_type, absl::Span<const uint32_t> sizes);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_H_
