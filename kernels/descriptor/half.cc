#include "kernels/descriptor/half.h"

#include <bit>

namespace opmill {
namespace {

// binary16: 1 sign, 5 exponent (bias 15), 10 fraction. binary32: 1, 8 (bias 127), 23.
constexpr uint32_t kBiasDifference = 127 - 15;
constexpr uint32_t kFractionDifference = 23 - 10;

// value / 2^shift, rounded to nearest, ties to even. `shift` is 1 to 31.
uint32_t RoundingShift(uint32_t value, uint32_t shift) {
  const uint32_t quotient = value >> shift;
  const uint32_t rest = value & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1) != 0) ? 1 : 0);
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1F;
  uint32_t fraction = half & 0x3FF;
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | 0x7F80'0000u | fraction << kFractionDifference);
  }
  if (exponent == 0) {
    if (fraction == 0) return std::bit_cast<float>(sign);
    // A denormal binary16 is a normal binary32: shift its leading 1 to bit 10.
    exponent = 1;
    while ((fraction & 0x400) == 0) {
      fraction <<= 1;
      --exponent;
    }
    fraction &= 0x3FF;
  }
  return std::bit_cast<float>(sign | (exponent + kBiasDifference) << 23 |
                              fraction << kFractionDifference);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFF'FFFF;
  if (magnitude > 0x7F80'0000) {
    const uint32_t payload = (magnitude >> kFractionDifference) & 0x3FF;
    return static_cast<uint16_t>(sign | 0x7E00 | payload);
  }
  const uint32_t exponent = magnitude >> 23;
  if (exponent > kBiasDifference) {
    // The exponent is rebiased first, so that a carry from the fraction continues into it, up to
    // infinity. 143 is 2^16, beyond everything that rounds to a finite binary16.
    if (exponent >= 143) return static_cast<uint16_t>(sign | 0x7C00);
    return static_cast<uint16_t>(
        sign | RoundingShift(magnitude - (kBiasDifference << 23), kFractionDifference));
  }
  // Denormal: units of 2^-24. Below exponent 102 even the nearest one is 0.
  if (exponent < 102) return static_cast<uint16_t>(sign);
  const uint32_t significand = (magnitude & 0x7F'FFFF) | 0x80'0000;
  return static_cast<uint16_t>(
      sign | RoundingShift(significand, kBiasDifference + 1 - exponent + kFractionDifference));
}

}  // namespace opmill
