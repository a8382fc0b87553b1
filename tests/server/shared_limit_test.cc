#include "server/execution/shared_limit.h"

#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace opmill {
namespace {

constexpr uint64_t kLimit = 6400;

class SharedLimitTest : public testing::Test {
 protected:
  bool Take(Holding& by, uint64_t amount, bool has_others = true) {
    return limit_.TryTake(by, amount, limit_.LimitFor(by, amount, has_others));
  }
  // In small steps, until no more is given.
  void TakeAll(Holding& by, bool has_others = true) {
    while (Take(by, 10, has_others)) {
    }
  }

  SharedLimit limit_{kLimit};
  Holding a_, b_, c_;
};

TEST_F(SharedLimitTest, ACallerAloneTakesAllOfIt) {
  TakeAll(a_, /*has_others=*/false);
  EXPECT_EQ(limit_.used(), kLimit);
  EXPECT_EQ(a_.amount, kLimit);
  limit_.Return(a_, kLimit);
  EXPECT_TRUE(Take(a_, kLimit, /*has_others=*/false)) << "at once";
  EXPECT_FALSE(Take(a_, 1, /*has_others=*/false));
}

TEST_F(SharedLimitTest, LeavesAnEighthForOthers) {
  TakeAll(a_);
  EXPECT_EQ(limit_.used(), kLimit / 8 * 7);
  EXPECT_TRUE(Take(b_, kLimit / 8));
  EXPECT_FALSE(Take(a_, 10));
}

TEST_F(SharedLimitTest, OneThatHoldsNothingMayTakeAsMuchAsThereIs) {
  EXPECT_TRUE(Take(a_, kLimit));
  EXPECT_FALSE(Take(b_, kLimit / 2));
  limit_.Return(a_, kLimit);
  EXPECT_TRUE(Take(b_, kLimit / 2));
}

TEST_F(SharedLimitTest, BeyondTheLimitTakesNobodyMoreThanALittle) {
  TakeAll(a_, /*has_others=*/false);
  TakeAll(b_);
  EXPECT_EQ(b_.amount, kLimit / 64);
  EXPECT_FALSE(Take(c_, 10)) << "there is no more than that";
  EXPECT_EQ(limit_.used(), kLimit + kLimit / 64);
  EXPECT_FALSE(Take(a_, 10));
}

TEST_F(SharedLimitTest, SharesBecomeEqualAsAmountsAreReturned) {
  TakeAll(a_, /*has_others=*/false);
  for (int i = 0; i < 2000; ++i) {  // a is first in each round
    if (a_.amount >= 10) limit_.Return(a_, 10);
    Take(a_, 10);
    Take(b_, 10);
    Take(c_, 10);
  }
  for (const Holding* const each : {&a_, &b_, &c_}) {
    EXPECT_GE(each->amount, kLimit / 4);
    EXPECT_LE(each->amount, kLimit / 2);
  }
  EXPECT_FALSE(limit_.ExceedsShare(b_, c_));
}

TEST_F(SharedLimitTest, TheShareCountsWhoAsks) {
  TakeAll(a_, /*has_others=*/false);
  EXPECT_FALSE(limit_.ExceedsShare(a_, a_));
  EXPECT_TRUE(limit_.ExceedsShare(a_, b_));
}

TEST_F(SharedLimitTest, DoesNotOverflow) {
  EXPECT_TRUE(Take(a_, 1));
  EXPECT_FALSE(Take(a_, UINT64_MAX));
  EXPECT_FALSE(Take(b_, UINT64_MAX));
  EXPECT_EQ(limit_.used(), 1u);
}

TEST_F(SharedLimitTest, HoldsItsLimitAgainstManyThreads) {
  std::vector<std::thread> threads;
  for (Holding* const by : {&a_, &b_, &c_}) {
    threads.emplace_back([this, by] {
      std::mt19937 random(1);
      for (int i = 0; i < 20000; ++i) {
        const uint64_t amount = random() % kLimit;
        if (!Take(*by, amount)) continue;
        EXPECT_LE(limit_.used(), kLimit + kLimit / 64);
        limit_.Return(*by, amount);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limit_.used(), 0u);
  EXPECT_EQ(a_.amount + b_.amount + c_.amount, 0u);
  TakeAll(a_, /*has_others=*/false);
  EXPECT_EQ(limit_.used(), kLimit);
}

}  // namespace
}  // namespace opmill
