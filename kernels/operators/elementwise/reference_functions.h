// The vocabulary of element-wise expressions for the reference, beside integer_functions.h.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_REFERENCE_FUNCTIONS_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_REFERENCE_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace opmill::element_wise {

// The vocabulary of expressions for double, in which functions are computed, and for float, in
// which every operation is rounded as devices round it.
template <typename T>
concept Real = std::is_floating_point_v<T>;

template <Real T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <Real T>
bool IsNan(T x) {
  return std::isnan(x);
}
template <Real T>
T Add(T a, T b) {
  return a + b;
}
template <Real T>
T Sub(T a, T b) {
  return a - b;
}
template <Real T>
T Mul(T a, T b) {
  return a * b;
}
template <Real T>
T Div(T a, T b) {
  return a / b;
}
template <Real T>
T Average(T a, T b) {
  return (a + b) * T{0.5};
}
template <Real T>
T Abs(T x) {
  return std::fabs(x);
}
template <Real T>
T Neg(T x) {
  return -x;
}
template <Real T>
T Sign(T x) {
  return std::isnan(x) || x == 0 ? x + 0 : std::copysign(T{1}, x);
}
// A NaN wins; -0 is below +0.
template <Real T>
T Min(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return kNan<T>;
  return b < a || (a == b && std::signbit(b)) ? b : a;
}
template <Real T>
T Max(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return kNan<T>;
  return a < b || (a == b && !std::signbit(b)) ? b : a;
}
template <Real T>
T Floor(T x) {
  return std::floor(x);
}
template <Real T>
T Ceil(T x) {
  return std::ceil(x);
}
template <Real T>
T Round(T x, uint32_t mode) {
  return mode == 0 ? std::nearbyint(x) : mode == 1 ? std::trunc(x) : std::round(x);
}
template <Real T>
bool IsInfinity(T x, uint32_t mode) {
  return std::isinf(x) && (mode == 0 || (x > 0) == (mode == 1));
}
template <Real T>
T ModTruncate(T a, T b) {
  return std::fmod(a, b);
}
template <Real T>
T ModFloor(T a, T b) {
  const T rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(rest, b);
  return std::signbit(rest) != std::signbit(b) ? rest + b : rest;
}
template <Real T>
T Acos(T x) {
  return std::acos(x);
}
template <Real T>
T Acosh(T x) {
  return std::acosh(x);
}
template <Real T>
T Asin(T x) {
  return std::asin(x);
}
template <Real T>
T Asinh(T x) {
  return std::asinh(x);
}
template <Real T>
T Atan(T x) {
  return std::atan(x);
}
template <Real T>
T Atan2(T y, T x) {
  return std::atan2(y, x);
}
template <Real T>
T Atanh(T x) {
  return std::atanh(x);
}
template <Real T>
T Cos(T x) {
  return std::cos(x);
}
template <Real T>
T Cosh(T x) {
  return std::cosh(x);
}
template <Real T>
T Erf(T x) {
  return std::erf(x);
}
template <Real T>
T Exp(T x) {
  return std::exp(x);
}
template <Real T>
T Expm1(T x) {
  return std::expm1(x);
}
template <Real T>
T Log(T x) {
  return std::log(x);
}
template <Real T>
T Log1p(T x) {
  return std::log1p(x);
}
template <Real T>
T NormalProbability(T x) {
  return T{0.5} * std::erfc(-x / std::sqrt(T{2}));
}
template <Real T>
T Pow(T x, T y) {
  return std::pow(x, y);
}
template <Real T>
T Sin(T x) {
  return std::sin(x);
}
template <Real T>
T Sinh(T x) {
  return std::sinh(x);
}
template <Real T>
T Sqrt(T x) {
  return std::sqrt(x);
}
template <Real T>
T Tan(T x) {
  return std::tan(x);
}
template <Real T>
T Tanh(T x) {
  return std::tanh(x);
}

}  // namespace opmill::element_wise

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_REFERENCE_FUNCTIONS_H_
