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

// An element type as 'descr' spells it: kind 'f', 'i', 'u' or 'b', and its size.
struct NpyDtype {
  char kind = 0;
  uint8_t bytes = 0;
  bool is_big_endian = false;
};

struct NpyHeader {
  NpyDtype dtype;
  v1::DataType data_type = v1::DATA_TYPE_UNSPECIFIED;  // where an operator takes the dtype as it is
  std::vector<uint32_t> sizes;                         // 1 to 8
  bool fortran_order = false;
  size_t data_offset = 0;  // in the file
  size_t data_bytes = 0;   // all inside the file

  // The array as an operator's tensor; column-major order becomes strides. Refused where a stride
  // does not fit the descriptor.
  absl::StatusOr<v1::TensorDesc> ToTensorDesc() const;
};

enum class NpyDtypes {
  kOfOperators,  // the ten types that operators take, little-endian
  kCastable,     // what CastElements takes: these, float64 and bool, in either byte order
};

// `file` is a whole file. InvalidArgument, with the reason, for what is no .npy file, is cut off,
// or holds an array that no operator takes.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> file,
                                         NpyDtypes dtypes = NpyDtypes::kOfOperators);

// The same in steps, for a file of which only the beginning is at hand.
//
// How many bytes come before the elements, by the first kNpyPrefixBytes bytes of the file, or all
// of a shorter one. At most 1 MiB.
inline constexpr size_t kNpyPrefixBytes = 12;
absl::StatusOr<size_t> NpyHeaderBytes(absl::Span<const std::byte> prefix);
// `header` is the file up to its elements.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::Span<const std::byte> header, NpyDtypes dtypes);
// Whether a file of `file_bytes` bytes holds the array.
absl::Status CheckNpyLength(const NpyHeader& header, uint64_t file_bytes);

// What goes in front of the elements of a row-major array: format 1.0.
std::string MakeNpyHeader(v1::DataType data_type, absl::Span<const uint32_t> sizes);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_H_
