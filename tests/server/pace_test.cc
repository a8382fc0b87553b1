#include "server/execution/pace.h"

#include "gtest/gtest.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

TEST(Pace, OneThatSendsNothingIsSlow) {
  Pace pace;
  EXPECT_TRUE(pace.IsSlow(AtSeconds(0)));
  EXPECT_EQ(Pace::TimeFor(0), absl::ZeroDuration());
}

TEST(Pace, AByteNowAndThenIsSlow) {
  Pace pace;
  for (int second = 0; second < 60; second += 4) {
    pace.Add(1, AtSeconds(second));
    EXPECT_TRUE(pace.IsSlow(AtSeconds(second + 1)));
  }
}

TEST(Pace, AMebibytePerSecondIsFastEnoughAndHalfOfItIsNot) {
  Pace enough;
  Pace half;
  for (double second = 0; second < 60; second += 0.25) {
    EXPECT_FALSE(second > 0 && enough.IsSlow(AtSeconds(second))) << second;
    EXPECT_TRUE(half.IsSlow(AtSeconds(second))) << second;
    enough.Add(kMebibyte / 4 + 100, AtSeconds(second));
    half.Add(kMebibyte / 8, AtSeconds(second));
  }
}

TEST(Pace, ABurstLastsForItsSizeAndNoLongerThanThePatience) {
  Pace pace;
  pace.Add(2 * kMebibyte, AtSeconds(0));
  EXPECT_FALSE(pace.IsSlow(AtSeconds(1.9)));
  EXPECT_TRUE(pace.IsSlow(AtSeconds(2.1)));
  pace.Add(1000 * kMebibyte, AtSeconds(10));
  EXPECT_FALSE(pace.IsSlow(AtSeconds(14.9)));
  EXPECT_TRUE(pace.IsSlow(AtSeconds(15.1)));
}

}  // namespace
}  // namespace opmill
