// Reads and writes the headers of NumPy's .npy files, formats 1.0 to 3.0.
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

// The element type in 'descr': kind 'f', 'i', 'u' or 'b', and the size.
struct NpyDtype {
  char kind = 0;
  uint8_t bytes = 0;
  bool is_big_endian = false;
};

struct NpyHeader {
  NpyDtype dtype;
  v1::DataType data_type = v1::DATA_TYPE_UNSPECIFIED;  // if an operator supports the dtype as it is
  std::vector<uint32_t> sizes;                         // 1 to 8
  bool fortran_order = false;
  size_t data_offset = 0;  // offset in the file
  size_t data_bytes = 0;   // entirely within the file

  // The array as a tensor descriptor; column-major order becomes strides. Returns an error if a
  // stride does not fit into the descriptor.
  absl::StatusOr<v1::TensorDesc> ToTensorDesc() const;
};

enum class NpyDtypes {
  kOfOperators,  // the ten types that operators support, little-endian
  kCastable,     // also float64 and bool, in either byte order; for CastElements
};

// `file` is the whole file. Returns InvalidArgument, with the reason, if it is not a .npy file, is
// truncated, or holds an array that no operator supports.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> file,
                                         NpyDtypes dtypes = NpyDtypes::kOfOperators);

// The same in steps, for a file that is only partially available.
//
// The number of bytes before the elements. `prefix` has the first kNpyPrefixBytes bytes of the
// file, or all of a shorter file. At most 1 MiB.
inline constexpr size_t kNpyPrefixBytes = 12;
absl::StatusOr<size_t> NpyHeaderBytes(absl::Span<const std::byte> prefix);
// `header` is the part of the file before its elements.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::Span<const std::byte> header, NpyDtypes dtypes);
// Checks that a file of `file_bytes` bytes holds the whole array.
absl::Status CheckNpyLength(const NpyHeader& header, uint64_t file_bytes);

// The header of a row-major array, in format 1.0.
std::string MakeNpyHeader(v1::DataType data_type, absl::Span<const uint32_t> sizes);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_H_
