// Reads and writes headers of NumPy's .npy files, format 1.0 to 3.0.
#ifndef OPMILL_KERNELS_BASE_NPY_H_
#define OPMILL_KERNELS_BASE_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace opmill {

// The ten types that operators support, as a list for messages.
inline constexpr char kDataTypeNames[] =
    "float32, float16, int64, int32, int16, int8, uint64, uint32, uint16, uint8";

// An element type as in 'descr': kind 'f', 'i', 'u' or 'b', and its size.
struct NpyDtype {
  char kind = 0;
  uint8_t bytes = 0;
  bool is_big_endian = false;

  friend bool operator==(const NpyDtype&, const NpyDtype&) = default;
};

std::string NameOf(const NpyDtype& dtype);  // "float64", "big-endian int16", "bool"
// Whether operators take elements of the dtype as they are: one of the ten types, little-endian.
bool IsOfOperators(const NpyDtype& dtype);

struct NpyHeader {
  NpyDtype dtype;
  std::vector<uint32_t> sizes;  // up to 8; only models take none
  bool fortran_order = false;
  size_t data_offset = 0;  // in the file
  size_t data_bytes = 0;   // within the file
};

enum class NpyDtypes {
  kOfOperators,  // the ten types that operators take, little-endian
  kCastable,     // also float64 and bool, and either byte order
};

// `file` is a whole file. Returns InvalidArgument if it is not a .npy file, is truncated, or holds
// an array of a type that no operator takes.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> file,
                                         NpyDtypes dtypes = NpyDtypes::kOfOperators);

// The same in steps, for files that are read piece by piece.
//
// The number of bytes before the elements, at most 1 MiB. `prefix` is the first kNpyPrefixBytes
// bytes of the file, or all of a shorter file.
inline constexpr size_t kNpyPrefixBytes = 12;
absl::StatusOr<size_t> NpyHeaderBytes(absl::Span<const std::byte> prefix);
// `header` is the part of the file before the elements.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::Span<const std::byte> header, NpyDtypes dtypes);
// InvalidArgument if a file of `file_bytes` bytes is too short for the array.
absl::Status CheckNpyLength(const NpyHeader& header, uint64_t file_bytes);

// The header of a row-major array of little-endian elements, in format 1.0.
std::string MakeNpyHeader(const NpyDtype& dtype, absl::Span<const uint32_t> sizes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_NPY_H_
