// Access to single tensor elements, for the reference implementations of operators.
#ifndef OPMILL_KERNELS_REFERENCE_ELEMENT_ACCESS_H_
#define OPMILL_KERNELS_REFERENCE_ELEMENT_ACCESS_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/base/half.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

static_assert(std::endian::native == std::endian::little, "Tensor data is little endian.");
static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

using Coordinate = std::vector<uint32_t>;

inline uint64_t ElementOffset(const Coordinate& coordinate, const std::vector<uint32_t>& strides) {
  uint64_t offset = 0;
  for (size_t i = 0; i < coordinate.size(); ++i) offset += uint64_t{coordinate[i]} * strides[i];
  return offset;
}

// Calls visit(coordinate) for every coordinate of `sizes` in row-major order, until `abandoned` is
// stopped.
template <typename Visit>
void ForEachCoordinate(const std::vector<uint32_t>& sizes, const std::stop_token& abandoned,
                       Visit visit) {
  Coordinate coordinate(sizes.size(), 0);
  while (!abandoned.stop_requested()) {
    visit(std::as_const(coordinate));
    size_t axis = sizes.size();
    while (axis > 0 && ++coordinate[axis - 1] == sizes[axis - 1]) coordinate[--axis] = 0;
    if (axis == 0) return;
  }
}

// An element's bits in its low ones, sign-extended for signed integers.
inline uint64_t SignExtended(DataType type, uint64_t bits) {
  switch (type) {
    case DataType::kInt8:
      return static_cast<uint64_t>(int64_t{static_cast<int8_t>(bits)});
    case DataType::kInt16:
      return static_cast<uint64_t>(int64_t{static_cast<int16_t>(bits)});
    case DataType::kInt32:
      return static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)});
    default:
      return bits;
  }
}

// Reads a tensor's elements as bits, sign-extended for signed integers.
class Reader {
 public:
  Reader(const TensorDesc& desc, absl::Span<const std::byte> bytes)
      : type_(desc.data_type),
        element_bytes_(ElementBytes(desc.data_type)),
        strides_(EffectiveStrides(desc)),
        bytes_(bytes) {}

  uint64_t At(const Coordinate& coordinate) const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes_.data() + ElementOffset(coordinate, strides_) * element_bytes_,
                element_bytes_);
    return SignExtended(type_, bits);
  }

 private:
  DataType type_;
  uint32_t element_bytes_;
  std::vector<uint32_t> strides_;
  absl::Span<const std::byte> bytes_;
};

// Stores the low bits of a value as an element. All other bytes are zeroed.
class Writer {
 public:
  Writer(const TensorDesc& desc, absl::Span<std::byte> bytes)
      : element_bytes_(ElementBytes(desc.data_type)),
        strides_(EffectiveStrides(desc)),
        bytes_(bytes) {
    std::memset(bytes_.data(), 0, RequiredBytes(desc));
  }

  void Store(const Coordinate& coordinate, uint64_t bits) {
    std::memcpy(bytes_.data() + ElementOffset(coordinate, strides_) * element_bytes_, &bits,
                element_bytes_);
  }

 private:
  uint32_t element_bytes_;
  std::vector<uint32_t> strides_;
  absl::Span<std::byte> bytes_;
};

inline bool IsNan(DataType type, uint64_t bits) {
  if (type == DataType::kFloat32) return (bits & 0x7FFF'FFFF) > 0x7F80'0000;
  if (type == DataType::kFloat16) return (bits & 0x7FFF) > 0x7C00;
  return false;
}

// An unsigned key with the order of the elements. -0 is directly below +0; NaNs are outside the
// range of numbers.
inline uint64_t TotalOrderKey(DataType type, uint64_t bits) {
  if (!IsSigned(type)) return bits;
  if (!IsFloat(type)) return bits ^ (uint64_t{1} << 63);
  const uint64_t sign = type == DataType::kFloat32 ? 0x8000'0000 : 0x8000;
  const uint64_t all = 2 * sign - 1;
  return (bits & sign) != 0 ? bits ^ all : bits | sign;
}

// Like TotalOrderKey, but -0 equals +0, and all NaNs are equal and greatest.
inline uint64_t OrderKey(DataType type, uint64_t bits) {
  if (IsNan(type, bits)) return std::numeric_limits<uint64_t>::max();
  const uint64_t sign = type == DataType::kFloat32 ? 0x8000'0000 : 0x8000;
  return TotalOrderKey(type, IsFloat(type) && bits == sign ? 0 : bits);
}

inline uint64_t CanonicalNan(DataType type) {
  return type == DataType::kFloat32 ? 0x7FC0'0000 : 0x7E00;
}

inline double ToDouble(DataType type, uint64_t bits) {
  return type == DataType::kFloat32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                    : HalfToFloat(static_cast<uint16_t>(bits));
}

inline uint64_t FromDouble(DataType type, double value) {
  if (std::isnan(value)) return CanonicalNan(type);
  const float rounded = static_cast<float>(value);
  return type == DataType::kFloat32 ? std::bit_cast<uint32_t>(rounded) : FloatToHalf(rounded);
}

// The coordinates of a reduction over `axes`: those of the outputs, and those within one reduction.
struct ReductionShape {
  ReductionShape(const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& axes,
                 std::stop_token abandoned_run = {})
      : output_sizes(sizes), inner_sizes(sizes.size(), 1), abandoned(std::move(abandoned_run)) {
    for (const uint32_t axis : axes) std::swap(output_sizes[axis], inner_sizes[axis]);
  }

  template <typename Visit>
  void ForEachOutput(Visit visit) const {
    ForEachCoordinate(output_sizes, abandoned, visit);
  }

  // Calls visit(input coordinate, position) for the elements reduced into `output`. Positions count
  // in row-major order over the reduced axes, in dimension order.
  template <typename Visit>
  void ForEachReduced(const Coordinate& output, Visit visit) const {
    uint64_t position = 0;
    Coordinate coordinate(output.size());
    ForEachCoordinate(inner_sizes, abandoned, [&](const Coordinate& inner) {
      for (size_t i = 0; i < inner.size(); ++i) coordinate[i] = output[i] + inner[i];
      visit(std::as_const(coordinate), position++);
    });
  }

  std::vector<uint32_t> output_sizes;  // 1 along reduced axes
  std::vector<uint32_t> inner_sizes;   // 1 along the others
  std::stop_token abandoned;
};

// One execution of a validated descriptor. The spans have at least the bytes that their tensors
// require.
struct ReferenceCall {
  const OperatorDesc& desc;
  absl::Span<const absl::Span<const std::byte>> inputs;
  absl::Span<const absl::Span<std::byte>> outputs;
  const std::stop_token& abandoned;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_REFERENCE_ELEMENT_ACCESS_H_
