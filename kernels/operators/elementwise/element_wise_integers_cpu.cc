// Integer operations and casts, as loops that the compiler vectorizes.
#include <type_traits>

#include "kernels/base/integer_types.h"
#include "kernels/operators/elementwise/element_wise_kernels.h"
#include "kernels/operators/elementwise/element_wise_support.h"
#include "kernels/operators/elementwise/integer_functions.h"

namespace opmill {
namespace element_wise {

#define OPMILL_INLINE
#include "kernels/operators/elementwise/element_wise_expression.h"
#undef OPMILL_INLINE

}  // namespace element_wise

namespace {

// Parameters are numbers of T; modes are of floats only.
template <ElementWiseOp op, typename T, typename Result>
void IntegerMap(const MapArguments& arguments) {
  using Expression = element_wise::Expression<op, T, T>;
  const T* __restrict a = static_cast<const T*>(arguments.operands[0]);
  const T* __restrict b = static_cast<const T*>(arguments.operands[1]);
  if (b == nullptr) b = a;
  const T p0 = static_cast<T>(arguments.parameters[0]);
  const T p1 = static_cast<T>(arguments.parameters[1]);
  Result* __restrict result = static_cast<Result*>(arguments.result);
  for (size_t i = 0; i < arguments.count; ++i) {
    result[i] = static_cast<Result>(Expression::Of(a[i], b[i], b[i], p0, p1));
  }
}

template <typename T>
void IfMap(const MapArguments& arguments) {
  const auto* __restrict condition = static_cast<const uint8_t*>(arguments.operands[0]);
  const T* __restrict a = static_cast<const T*>(arguments.operands[1]);
  const T* __restrict b = static_cast<const T*>(arguments.operands[2]);
  T* __restrict result = static_cast<T*>(arguments.result);
  for (size_t i = 0; i < arguments.count; ++i) result[i] = condition[i] != 0 ? a[i] : b[i];
}

template <typename T>
constexpr DataType TypeOf() {
  constexpr bool is_signed = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1:
      return is_signed ? kInt8 : kUint8;
    case 2:
      return is_signed ? kInt16 : kUint16;
    case 4:
      return is_signed ? kInt32 : kUint32;
    default:
      return is_signed ? kInt64 : kUint64;
  }
}

template <typename T>
MapKernel FindIntegerMap(ElementWiseOp op, DataType type) {
  if (op == ElementWiseOp::kIf) return &IfMap<T>;
  switch (op) {
#define OPMILL_ELEMENT_WISE(inputs, Name, name, alias, summary, support, result, ...) \
  case ElementWiseOp::k##Name:                                                        \
    if constexpr (support[0].types.Contains(TypeOf<T>())) {                           \
      constexpr ElementWiseOp kOp = ElementWiseOp::k##Name;                           \
      if constexpr (ElementWiseResult::result == ElementWiseResult::kTruth ||         \
                    ElementWiseResult::result == ElementWiseResult::kCount) {         \
        if (type == kUint32) return &IntegerMap<kOp, T, uint32_t>;                    \
        return &IntegerMap<kOp, T, uint8_t>;                                          \
      } else {                                                                        \
        return &IntegerMap<kOp, T, T>;                                                \
      }                                                                               \
    }                                                                                 \
    return nullptr;
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
  }
  return nullptr;
}

// Calls function(T()) with the type in which the processor holds an element.
template <typename Function>
MapKernel WithType(DataType type, const Function& function) {
  return IsFloat(type) ? function(float()) : VisitInteger(type, function);
}

template <typename From, typename To>
void CastMap(const MapArguments& arguments) {
  const From* __restrict from = static_cast<const From*>(arguments.operands[0]);
  To* __restrict to = static_cast<To*>(arguments.result);
  for (size_t i = 0; i < arguments.count; ++i) to[i] = element_wise::CastTo<To>(from[i]);
}

}  // namespace

MapKernel IntegerMapKernel(ElementWiseOp op, DataType type, DataType result) {
  return WithType(type, [&](auto t) -> MapKernel {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T>) {
      return FindIntegerMap<T>(op, result);
    } else if (op == ElementWiseOp::kIf) {
      return &IfMap<T>;
    } else {
      return &CastMap<T, T>;
    }
  });
}

MapKernel CastMapKernel(DataType from, DataType to) {
  return WithType(from, [&](auto f) {
    return WithType(to, [&](auto t) -> MapKernel { return &CastMap<decltype(f), decltype(t)>; });
  });
}

}  // namespace opmill
