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
#include "kernels/base/integer_types.h"
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
auto VisitType(ElementType type, const Visit& visit) {
  if (type == ElementType::kFloat) return visit(float());
  if (type == ElementType::kDouble) return visit(double());
  return VisitInteger(type, visit);
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
