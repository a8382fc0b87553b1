// Element types for operators that process one element at a time and leave vectorization to the
// compiler.
#ifndef OPMILL_KERNELS_CPU_ELEMENT_DISPATCH_H_
#define OPMILL_KERNELS_CPU_ELEMENT_DISPATCH_H_

#include <cstdint>
#include <cstring>

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

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_ELEMENT_DISPATCH_H_
