#include "tests/support/tensors.h"

#include <bit>
#include <cstring>

#include "kernels/base/half.h"

namespace opmill {
namespace {

// Offsets in elements, row-major.
std::vector<uint64_t> ElementOffsets(const TensorDesc& desc) {
  const std::vector<uint32_t> strides = EffectiveStrides(desc);
  std::vector<uint64_t> offsets = {0};
  for (size_t axis = 0; axis < desc.sizes.size(); ++axis) {
    std::vector<uint64_t> deeper;
    for (const uint64_t offset : offsets) {
      for (uint64_t i = 0; i < desc.sizes[axis]; ++i) deeper.push_back(offset + i * strides[axis]);
    }
    offsets = std::move(deeper);
  }
  return offsets;
}

}  // namespace

uint64_t BitsOf(DataType type, double number) {
  if (type == DataType::kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(number));
  if (type == DataType::kFloat16) return FloatToHalf(static_cast<float>(number));
  const uint64_t bits = number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number))
                                   : static_cast<uint64_t>(number);
  const uint32_t width = 8 * ElementBytes(type);
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

double NumberOf(DataType type, uint64_t bits) {
  switch (type) {
    case DataType::kFloat32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DataType::kFloat16:
      return HalfToFloat(static_cast<uint16_t>(bits));
    case DataType::kInt64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case DataType::kInt32:
      return static_cast<int32_t>(bits);
    case DataType::kInt16:
      return static_cast<int16_t>(bits);
    case DataType::kInt8:
      return static_cast<int8_t>(bits);
    default:
      return static_cast<double>(bits);
  }
}

std::vector<std::byte> BytesOfBits(const TensorDesc& desc, const std::vector<uint64_t>& bits,
                                   std::byte gap) {
  std::vector<std::byte> bytes(RequiredBytes(desc), gap);
  const std::vector<uint64_t> offsets = ElementOffsets(desc);
  const uint32_t element_bytes = ElementBytes(desc.data_type);
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::memcpy(bytes.data() + offsets[i] * element_bytes, &bits.at(i), element_bytes);
  }
  return bytes;
}

std::vector<std::byte> BytesOfNumbers(const TensorDesc& desc, const std::vector<double>& numbers,
                                      std::byte gap) {
  std::vector<uint64_t> bits;
  for (const double number : numbers) bits.push_back(BitsOf(desc.data_type, number));
  return BytesOfBits(desc, bits, gap);
}

std::vector<uint64_t> BitsIn(const TensorDesc& desc, const std::vector<std::byte>& bytes) {
  std::vector<uint64_t> all_bits;
  const uint32_t element_bytes = ElementBytes(desc.data_type);
  for (const uint64_t offset : ElementOffsets(desc)) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + offset * element_bytes, element_bytes);
    all_bits.push_back(bits);
  }
  return all_bits;
}

std::vector<double> NumbersIn(const TensorDesc& desc, const std::vector<std::byte>& bytes) {
  std::vector<double> numbers;
  for (const uint64_t bits : BitsIn(desc, bytes)) {
    numbers.push_back(NumberOf(desc.data_type, bits));
  }
  return numbers;
}

}  // namespace opmill
