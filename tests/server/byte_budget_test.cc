#include "kernels/base/byte_budget.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

TEST(ByteBudget, SharesReturnWhatTheyHave) {
  const auto budget = std::make_shared<ByteBudget>(10, "max_bytes");
  {
    ByteShare first(budget);
    ByteShare second(budget);
    EXPECT_TRUE(first.Grow(6).ok());
    EXPECT_EQ(second.Grow(5),
              absl::ResourceExhaustedError("There is no room for 5 bytes of a model: 6 of 10 bytes "
                                           "(max_bytes) are in use."));
    EXPECT_EQ(second.bytes(), 0u);
    first.ShrinkTo(5);
    EXPECT_TRUE(second.Grow(5).ok());
    first.Add(second);
    EXPECT_EQ(first.bytes(), 10u);
    EXPECT_EQ(second.bytes(), 0u);
    EXPECT_EQ(budget->used(), 10u);
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(ByteBudget, CountsInItsParentToo) {
  const auto all = std::make_shared<ByteBudget>(10, "all");
  const auto some = std::make_shared<ByteBudget>(8, "some", all);
  ByteShare of_all(all);
  ByteShare of_some(some);
  ASSERT_TRUE(of_all.Grow(5).ok());
  EXPECT_EQ(of_some.Grow(6).message(),
            "There is no room for 6 bytes of a model: 5 of 10 bytes (all) are in use.");
  EXPECT_EQ(some->used(), 0u);
  EXPECT_TRUE(of_some.Grow(5).ok());
  EXPECT_EQ(all->used(), 10u);
  of_some.ShrinkTo(1);
  EXPECT_EQ(all->used(), 6u);
}

TEST(ByteBudget, MakesRoomOnlyForWhatCouldFit) {
  const auto budget = std::make_shared<ByteBudget>(10, "max_bytes");
  std::vector<std::unique_ptr<ByteShare>> old;
  for (int i = 0; i < 3; ++i) {
    old.push_back(std::make_unique<ByteShare>(budget));
    ASSERT_TRUE(old.back()->Grow(3).ok());
  }
  budget->SetMakeRoom([&] {
    if (old.empty()) return false;
    old.pop_back();
    return true;
  });
  ByteShare share(budget);
  EXPECT_FALSE(share.Grow(11).ok());
  EXPECT_EQ(old.size(), 3u);
  EXPECT_TRUE(share.Grow(5).ok());
  EXPECT_EQ(old.size(), 1u);
  EXPECT_FALSE(share.Grow(6).ok());
  EXPECT_EQ(budget->used(), 5u);
}

TEST(ByteBudget, IsExactForManyThreads) {
  const auto budget = std::make_shared<ByteBudget>(4, "max_bytes");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        ByteShare share(budget);
        if (share.Grow(3).ok()) {
          ASSERT_LE(budget->used(), 4u);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace opmill
