// Calls templates with the type of an element.
#ifndef OPMILL_KERNELS_CPU_ELEMENT_DISPATCH_H_
#define OPMILL_KERNELS_CPU_ELEMENT_DISPATCH_H_

#include <cstdint>
#include <type_traits>

#include "kernels/base/half.h"
#include "kernels/descriptor/tensor.h"

namespace opmill {

// FLOAT16 as a distinct type.
struct CpuHalf {
  uint16_t bits;
};

// Calls function(T()) with the unsigned type of that size.
template <typename Function>
auto WithWordOf(uint32_t element_bytes, const Function& function) {
  switch (element_bytes) {
    case 1:
      return function(uint8_t());
    case 2:
      return function(uint16_t());
    case 4:
      return function(uint32_t());
    default:
      return function(uint64_t());
  }
}

// Calls function(T()) with the type in which an element is summed. Integers are unsigned so that
// they wrap.
template <typename Function>
auto WithElementOf(DataType type, const Function& function) {
  if (type == DataType::kFloat32) return function(float());
  if (type == DataType::kFloat16) return function(CpuHalf());
  return WithWordOf(ElementBytes(type), function);
}

// Calls function(T(), is_float), where T is the integer type with the bits of an element. It is
// signed for floats.
template <typename Function>
auto WithBitsOf(DataType type, const Function& function) {
  constexpr std::true_type kIsFloat;
  constexpr std::false_type kIsInteger;
  switch (type) {
    case DataType::kFloat32:
      return function(int32_t(), kIsFloat);
    case DataType::kFloat16:
      return function(int16_t(), kIsFloat);
    case DataType::kInt64:
      return function(int64_t(), kIsInteger);
    case DataType::kInt32:
      return function(int32_t(), kIsInteger);
    case DataType::kInt16:
      return function(int16_t(), kIsInteger);
    case DataType::kInt8:
      return function(int8_t(), kIsInteger);
    case DataType::kUint64:
      return function(uint64_t(), kIsInteger);
    case DataType::kUint32:
      return function(uint32_t(), kIsInteger);
    case DataType::kUint16:
      return function(uint16_t(), kIsInteger);
    default:
      return function(uint8_t(), kIsInteger);
  }
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_ELEMENT_DISPATCH_H_
