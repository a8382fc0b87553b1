// Elements of constants as numbers.
#ifndef OPMILL_KERNELS_ONNX_ELEMENTS_H_
#define OPMILL_KERNELS_ONNX_ELEMENTS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

template <typename T>
T LoadAs(const char* at) {
  T element;
  std::memcpy(&element, at, sizeof element);
  return element;
}

// Calls visit(T()) for the C++ type of the elements; FLOAT16 is not one.
template <typename Visit>
auto VisitType(ElementType type, Visit visit) {
  switch (type) {
    case ElementType::kFloat:
      return visit(float());
    case ElementType::kDouble:
      return visit(double());
    case ElementType::kInt8:
      return visit(int8_t());
    case ElementType::kInt16:
      return visit(int16_t());
    case ElementType::kUint16:
      return visit(uint16_t());
    case ElementType::kInt32:
      return visit(int32_t());
    case ElementType::kUint32:
      return visit(uint32_t());
    case ElementType::kInt64:
      return visit(int64_t());
    case ElementType::kUint64:
      return visit(uint64_t());
    default:
      return visit(uint8_t());
  }
}

template <typename T>
T LoadNumber(ElementType type, const char* bytes, size_t index) {
  if (type == ElementType::kFloat16) {
    return static_cast<T>(HalfToFloat(LoadAs<uint16_t>(bytes + index * 2)));
  }
  return VisitType(type, [&](auto zero) {
    return static_cast<T>(LoadAs<decltype(zero)>(bytes + index * sizeof zero));
  });
}

template <typename T>
Tensor TensorOf(ElementType type, Sizes sizes, const std::vector<T>& elements) {
  return {{type, std::move(sizes)},
          std::make_shared<const std::string>(reinterpret_cast<const char*>(elements.data()),
                                              elements.size() * sizeof(T))};
}
inline Tensor TensorOf(const std::vector<int64_t>& elements) {
  return TensorOf(ElementType::kInt64, {static_cast<int64_t>(elements.size())}, elements);
}
// One element of a float type.
inline Tensor ScalarOf(ElementType type, double value) {
  if (type == ElementType::kFloat16) {
    return TensorOf(type, {}, std::vector<uint16_t>{FloatToHalf(static_cast<float>(value))});
  }
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    return TensorOf(type, {}, std::vector<T>{static_cast<T>(value)});
  });
}

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_ELEMENTS_H_
