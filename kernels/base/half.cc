#include "kernels/base/half.h"

#include <algorithm>
#include <bit>

namespace opmill {
namespace {

// binary16: 1 bit of sign, 5 of exponent (bias 15), 10 of fraction. binary32: 1, 8 (bias 127), 23.
// binary64: 1, 11 (bias 1023), 52.

// value / 2^shift, to nearest, ties to even. `shift` is 1 to 63.
uint64_t RoundingShift(uint64_t value, int shift) {
  const uint64_t quotient = value >> shift;
  const uint64_t rest = value & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1) != 0) ? 1 : 0);
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1F;
  const uint32_t fraction = half & 0x3FF;
  if (exponent == 0) {
    // Denormal, or 0: a multiple of 2^-24, which binary32 has as a normal number.
    return std::bit_cast<float>(sign |
                                std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
  }
  const uint32_t wide_exponent = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << (23 - 10));
}

uint16_t FloatToHalf(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = bits >> 48 & 0x8000;
  const uint64_t fraction = bits & 0xF'FFFF'FFFF'FFFF;
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
  const bool is_nan = exponent == 1024 && fraction != 0;
  if (is_nan) return static_cast<uint16_t>(sign | 0x7E00 | fraction >> 42);
  if (exponent > 15) return static_cast<uint16_t>(sign | 0x7C00);
  if (exponent < -25) return static_cast<uint16_t>(sign);
  // Below 2^-14, the least normal number, halves are multiples of 2^-24.
  const int above_denormal = std::max(exponent, -14) + 14;
  const int dropped_bits = 52 - 10 + (above_denormal - 14 - exponent);
  const uint64_t kept = RoundingShift(fraction | uint64_t{1} << 52, dropped_bits);
  // The leading 1 of a normal number adds 1 to the exponent field, and so does a carry, up to
  // infinity.
  return static_cast<uint16_t>(sign | ((static_cast<uint64_t>(above_denormal) << 10) + kept));
}

}  // namespace opmill
