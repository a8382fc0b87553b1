#include "kernels/base/half.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace opmill {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a non-NaN binary16 by its definition.
double ValueOf(uint32_t half) {
  const int exponent = (half >> 10) & 0x1F;
  const int fraction = half & 0x3FF;
  const double magnitude = exponent == 0x1F ? kInfinity
                           : exponent == 0  ? std::ldexp(fraction, -24)
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool IsNan(uint32_t half) { return (half & 0x7FFF) > 0x7C00; }

TEST(Half, WidensEveryValueExactly) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = HalfToFloat(static_cast<uint16_t>(half));
    if (IsNan(half)) {
      EXPECT_EQ(std::bit_cast<uint32_t>(value),
                (half & 0x8000) << 16 | 0x7F80'0000 | (half & 0x3FF) << 13);
      continue;
    }
    EXPECT_EQ(value, ValueOf(half)) << half;
    EXPECT_EQ(std::signbit(value), half >= 0x8000) << half;
  }
}

TEST(Half, GivesBackEveryValueItWidened) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    // A signaling NaN becomes quiet.
    const uint32_t expected = IsNan(half) ? half | 0x200 : half;
    EXPECT_EQ(FloatToHalf(HalfToFloat(static_cast<uint16_t>(half))), expected) << half;
  }
}

TEST(Half, RoundsToNearestEvenBetweenEveryTwoNeighbours) {
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    // Above the largest finite value stands 2^16, from where on infinity is nearest.
    const double above = half == 0x7BFF ? 65536 : ValueOf(half + 1);
    const double middle = (ValueOf(half) + above) / 2;
    const float float_middle = static_cast<float>(middle);  // exact
    const uint32_t even = half + (half & 1);
    for (const uint32_t sign : {0u, 0x8000u}) {
      const int factor = sign == 0 ? 1 : -1;
      EXPECT_EQ(FloatToHalf(factor * std::nextafter(float_middle, 0.0f)), sign | half);
      EXPECT_EQ(FloatToHalf(factor * std::nextafter(middle, 0.0)), sign | half);
      EXPECT_EQ(FloatToHalf(factor * middle), sign | even);
      EXPECT_EQ(FloatToHalf(factor * std::nextafter(middle, HUGE_VAL)), sign | (half + 1));
      EXPECT_EQ(FloatToHalf(factor * std::nextafter(float_middle, kInfinity)), sign | (half + 1));
    }
  }
}

TEST(Half, RoundsTheEndsOfTheRange) {
  EXPECT_EQ(FloatToHalf(1e300), 0x7C00);
  EXPECT_EQ(FloatToHalf(-5e-324), 0x8000);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(FloatToHalf(-kInfinity), 0xFC00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::min()), 0x8000);
  EXPECT_EQ(FloatToHalf(std::bit_cast<float>(0x7F80'0001u)), 0x7E00);
  EXPECT_EQ(FloatToHalf(std::bit_cast<float>(0xFFFF'FFFFu)), 0xFFFF);
}

}  // namespace
}  // namespace opmill
