// Tensor descriptors as in DirectML: a data type, 1 to 8 sizes, and optional strides in elements.
#ifndef OPMILL_KERNELS_DESCRIPTOR_TENSOR_H_
#define OPMILL_KERNELS_DESCRIPTOR_TENSOR_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace opmill {

enum class DataType : uint32_t {
  kUnknown = 0,
  kFloat32 = 1,
  kFloat16 = 2,
  kUint32 = 3,
  kUint16 = 4,
  kUint8 = 5,
  kInt32 = 6,
  kInt16 = 7,
  kInt8 = 8,
  kFloat64 = 9,  // in DirectML; no operator here supports it
  kUint64 = 10,
  kInt64 = 11,
};

inline constexpr std::array<DataType, 10> kAllDataTypes = {
    DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,  DataType::kInt16,
    DataType::kInt8,    DataType::kUint64,  DataType::kUint32, DataType::kUint16, DataType::kUint8};

inline constexpr uint32_t kMaxRank = 8;
inline constexpr uint64_t kMaxElements = 0xFFFF'FFFFull;  // 2^32 - 1

uint32_t ElementBytes(DataType type);  // 0 for types that no operator supports
bool IsFloat(DataType type);
bool IsSigned(DataType type);               // floats and I8..I64
absl::string_view ToString(DataType type);  // "FLOAT32"

struct TensorDesc {
  DataType data_type = DataType::kUnknown;
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> strides;  // in elements; empty means packed

  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TensorDesc& d) {
    return H::combine(std::move(h), d.data_type, d.sizes, d.strides);
  }
};

// Validates rank, sizes, element count, strides and addressable bytes. Errors name the field with
// the path `field` ("input"). The functions below require a descriptor that has passed this check.
absl::Status CheckTensor(const TensorDesc& desc, absl::string_view field);

uint64_t ElementCount(const TensorDesc& desc);
// The sizes with 1 for each of the axes.
std::vector<uint32_t> ReducedSizes(std::vector<uint32_t> sizes, const std::vector<uint32_t>& axes);
std::vector<uint32_t> PackedStrides(const std::vector<uint32_t>& sizes);
std::vector<uint32_t> EffectiveStrides(
    const TensorDesc& desc);            // the given strides, or packed ones
bool IsPacked(const TensorDesc& desc);  // row-major order without gaps

// Whether two coordinates address the same element (a zero stride, or strides that cross).
// kUndecided: the strides cross so often that the search was given up.
enum class Overlap : uint32_t { kNone, kSome, kUndecided };
Overlap FindOverlap(const TensorDesc& desc);
bool HasOverlap(const TensorDesc& desc);  // anything but kNone

uint64_t SpannedBytes(const TensorDesc& desc);  // (last element index + 1) * element size
// SpannedBytes, rounded up to a multiple of 4.
uint64_t RequiredBytes(const TensorDesc& desc);

std::string ToString(const TensorDesc& desc);  // "FLOAT32[2,3] strides [4,1]"
// The same at the end of `text`, without further strings.
void AppendText(const TensorDesc& desc, std::string& text);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_TENSOR_H_
