// The vocabulary of element-wise expressions for integers, for the processor and the reference.
// shaders/include/numbers.hlsli has the same in HLSL. Integers wrap; division by zero gives 0.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_INTEGER_FUNCTIONS_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_INTEGER_FUNCTIONS_H_

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace opmill::element_wise {

// Of all numbers.
template <typename T>
bool IsTrue(T x) {
  return x != 0;
}
template <typename T>
bool Less(T a, T b) {
  return a < b;
}
template <typename T>
bool LessOrEqual(T a, T b) {
  return a <= b;
}
template <typename T>
bool Equal(T a, T b) {
  return a == b;
}
template <typename T>
T Select(bool condition, T a, T b) {
  return condition ? a : b;
}
template <typename T>
T Cast(T x) {
  return x;
}

// Wide enough that products of narrow types do not overflow a signed int.
template <std::integral T>
using Word = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <std::integral T>
T Add(T a, T b) {
  return static_cast<T>(static_cast<Word<T>>(a) + static_cast<Word<T>>(b));
}
template <std::integral T>
T Sub(T a, T b) {
  return static_cast<T>(static_cast<Word<T>>(a) - static_cast<Word<T>>(b));
}
template <std::integral T>
T Mul(T a, T b) {
  return static_cast<T>(static_cast<Word<T>>(a) * static_cast<Word<T>>(b));
}
template <std::integral T>
T Neg(T a) {
  return Sub(T{0}, a);
}
template <std::integral T>
T Abs(T a) {
  return a < 0 ? Neg(a) : a;
}
template <std::integral T>
T Sign(T a) {
  return static_cast<T>((a > 0) - (a < 0));
}
template <std::integral T>
T Div(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return Neg(a);
  }
  return static_cast<T>(a / b);
}
template <std::integral T>
T ModTruncate(T a, T b) {
  return b == 0 ? T{0} : Sub(a, Mul(Div(a, b), b));
}
template <std::integral T>
T ModFloor(T a, T b) {
  const T rest = ModTruncate(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? Add(rest, b) : rest;
}
template <std::integral T>
T Average(T a, T b) {
  const T below = static_cast<T>((a & b) + ((a ^ b) >> 1));
  return below < 0 ? static_cast<T>(below + ((a ^ b) & 1)) : below;
}
template <std::integral T>
T Min(T a, T b) {
  return b < a ? b : a;
}
template <std::integral T>
T Max(T a, T b) {
  return a < b ? b : a;
}
template <std::integral T>
T BitNot(T a) {
  return static_cast<T>(~a);
}
template <std::integral T>
T BitAnd(T a, T b) {
  return static_cast<T>(a & b);
}
template <std::integral T>
T BitOr(T a, T b) {
  return static_cast<T>(a | b);
}
template <std::integral T>
T BitXor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <std::integral T>
uint32_t BitCount(T a) {
  return static_cast<uint32_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
}
// Shifts by the width and more give 0.
template <std::unsigned_integral T>
T ShiftLeft(T a, T b) {
  return b < std::numeric_limits<T>::digits ? static_cast<T>(Word<T>{a} << b) : T{0};
}
template <std::unsigned_integral T>
T ShiftRight(T a, T b) {
  return b < std::numeric_limits<T>::digits ? static_cast<T>(a >> b) : T{0};
}

// From floats: toward zero, within the range, and 0 for NaN. From integers: the low bits.
template <typename To, typename From>
To CastTo(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From limit =
        static_cast<From>(uint64_t{1} << (std::numeric_limits<To>::digits - 1)) * 2;
    if (std::isnan(x)) return 0;
    if (x >= limit) return std::numeric_limits<To>::max();
    const From least = std::is_signed_v<To> ? -limit : From{0};
    return x <= least ? std::numeric_limits<To>::min() : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace opmill::element_wise

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_INTEGER_FUNCTIONS_H_
