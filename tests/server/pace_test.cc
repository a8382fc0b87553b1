#include "server/execution/pace.h"

#include "gtest/gtest.h"

namespace opmill {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(Pace, OneThatSendsNothingIsSlow) {
  Pace pace;
  EXPECT_TRUE(pace.IsSlow(At(0)));
  EXPECT_EQ(Pace::TimeFor(0), absl::ZeroDuration());
}

TEST(Pace, AByteNowAndThenIsSlow) {
  Pace pace;
  for (int second = 0; second < 60; second += 4) {
    pace.Add(1, At(second));
    EXPECT_TRUE(pace.IsSlow(At(second + 1)));
  }
}

TEST(Pace, AMebibytePerSecondIsFastEnoughAndHalfOfItIsNot) {
  Pace enough;
  Pace half;
  for (double second = 0; second < 60; second += 0.25) {
    EXPECT_FALSE(second > 0 && enough.IsSlow(At(second))) << second;
    EXPECT_TRUE(half.IsSlow(At(second))) << second;
    enough.Add(kMebibyte / 4 + 100, At(second));
    half.Add(kMebibyte / 8, At(second));
  }
}

TEST(Pace, ABurstLastsForItsSizeAndNoLongerThanThePatience) {
  Pace pace;
  pace.Add(2 * kMebibyte, At(0));
  EXPECT_FALSE(pace.IsSlow(At(1.9)));
  EXPECT_TRUE(pace.IsSlow(At(2.1)));
  pace.Add(1000 * kMebibyte, At(10));
  EXPECT_FALSE(pace.IsSlow(At(14.9)));
  EXPECT_TRUE(pace.IsSlow(At(15.1)));
}

}  // namespace
}  // namespace opmill
