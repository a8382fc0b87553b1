#include "tests/soak/vitals.h"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

constexpr double kMiB = 1 << 20;
constexpr VitalBounds kBounds = {.resident_bytes_per_unit = kMiB, .handles = 2, .threads = 1};

// One sample per minute: 100 MiB plus noise plus `grow`.
template <typename Grow>
std::vector<Vitals> Samples(const Grow& grow) {
  std::vector<Vitals> all;
  for (int minute = 0; minute < 30; ++minute) {
    const double noise = (minute * 7 % 5 - 2) * 0.5;
    Vitals vitals = {.at = minute * 1.0,
                     .resident_bytes = static_cast<uint64_t>((100 + noise) * kMiB),
                     .handles = 20,
                     .threads = 10};
    grow(minute, vitals);
    all.push_back(vitals);
  }
  return all;
}

TEST(FitSlope, FindsTheLineAndItsSpread) {
  const Slope line = FitSlope({{0, 1}, {1, 3}, {2, 5}, {3, 7}});
  EXPECT_DOUBLE_EQ(line.per_x, 2);
  EXPECT_NEAR(line.spread, 0, 1e-12);
  const Slope noisy = FitSlope({{0, 0}, {1, 1}, {2, 0}, {3, 1}});
  EXPECT_DOUBLE_EQ(noisy.per_x, 0.2);
  EXPECT_NEAR(noisy.spread, 0.2828427, 1e-6);
}

TEST(JudgeVitals, HoldsWhatOnlyFillsItsPoolsAndTrembles) {
  bool held = false;
  const std::string text = JudgeVitals(Samples([](int minute, Vitals& v) {
                                         if (minute < 8) v.resident_bytes /= 2;
                                       }),
                                       kBounds, held);
  EXPECT_TRUE(held) << text;
}

TEST(JudgeVitals, TellsALeakOfMemory) {
  bool held = true;
  const std::string text = JudgeVitals(
      Samples([](int minute, Vitals& v) { v.resident_bytes += minute * uint64_t{3} << 20; }),
      kBounds, held);
  EXPECT_FALSE(held);
  EXPECT_THAT(text, HasSubstr("1.000 are allowed: GREW"));
}

TEST(JudgeVitals, TellsALeakOfHandlesOrThreads) {
  bool held = true;
  JudgeVitals(Samples([](int minute, Vitals& v) { v.handles += minute / 4; }), kBounds, held);
  EXPECT_FALSE(held);
  held = true;
  JudgeVitals(Samples([](int minute, Vitals& v) { v.threads += minute / 8; }), kBounds, held);
  EXPECT_FALSE(held);
}

TEST(JudgeVitals, HasNoVerdictOnAFewSamples) {
  bool held = true;
  JudgeVitals({Vitals(), Vitals()}, kBounds, held);
  EXPECT_FALSE(held);
}

TEST(TakeVitals, CountsHandlesAndThreads) {
  const Vitals before = TakeVitals(getpid(), 0);
  EXPECT_GT(before.resident_bytes, 1u << 20);
  const int handle = open("/dev/null", O_RDONLY);
  std::thread thread([&before] {
    EXPECT_EQ(TakeVitals(getpid(), 0).handles, before.handles + 1);
    EXPECT_EQ(TakeVitals(getpid(), 0).threads, before.threads + 1);
  });
  thread.join();
  close(handle);
}

}  // namespace
}  // namespace opmill
