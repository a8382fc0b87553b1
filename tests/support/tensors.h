// Converts readable numbers to the bytes of test tensors, and back.
#ifndef OPMILL_TESTS_SUPPORT_TENSORS_H_
#define OPMILL_TESTS_SUPPORT_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/descriptor/tensor.h"

namespace opmill {

// The bits of one element; the type must be able to represent the number.
uint64_t BitsOf(DataType type, double number);
double NumberOf(DataType type, uint64_t bits);

// RequiredBytes(desc) bytes with `bits` as the elements in row-major order; gaps are filled with
// `gap`. Elements at the same location (stride 0) are written in order.
std::vector<std::byte> BytesOfBits(const TensorDesc& desc, const std::vector<uint64_t>& bits,
                                   std::byte gap = std::byte{0xA5});
std::vector<std::byte> BytesOfNumbers(const TensorDesc& desc, const std::vector<double>& numbers,
                                      std::byte gap = std::byte{0xA5});

// The elements in row-major order.
std::vector<uint64_t> BitsIn(const TensorDesc& desc, const std::vector<std::byte>& bytes);
std::vector<double> NumbersIn(const TensorDesc& desc, const std::vector<std::byte>& bytes);

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_TENSORS_H_
