#include "server/execution/memory_budget.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

TEST(MemoryBudget, GivesSharesUpToItsLimitAndTakesThemBack) {
  MemoryBudget budget(100);
  {
    auto first = budget.Take(60);
    ASSERT_TRUE(first.ok());
    auto second = budget.Take(40);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(budget.used(), 100u);
    const absl::Status full = budget.Take(1).status();
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(full.message(),
              "There is no room for a buffer of 1 bytes now: 100 of 100 bytes "
              "(max_bytes_in_flight) are in use.");
    EXPECT_TRUE(IsRetryable(full));
    EXPECT_TRUE(budget.Take(0).ok());
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MemoryBudget, DoesNotOverflow) {
  MemoryBudget budget(100);
  const auto share = budget.Take(1);
  EXPECT_FALSE(budget.Take(std::numeric_limits<uint64_t>::max()).ok());
  EXPECT_EQ(budget.used(), 1u);
}

TEST(MemoryBudget, CountsAShareOnceHoweverItMoves) {
  MemoryBudget budget(100);
  MemoryBudget::Share held = *budget.Take(20);
  {
    MemoryBudget::Share first = *budget.Take(10);
    held = std::move(first);
  }
  EXPECT_EQ(budget.used(), 10u);
  held = {};
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MemoryBudget, MayBeGoneBeforeItsShares) {
  auto budget = std::make_unique<MemoryBudget>(100);
  const MemoryBudget::Share held = *budget->Take(10);
  budget = nullptr;
}

TEST(MemoryBudget, HoldsItsLimitAgainstManyThreads) {
  MemoryBudget budget(100);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&budget] {
      for (int j = 0; j < 20000; ++j) {
        const auto share = budget.Take(30 + j % 20);
        EXPECT_LE(budget.used(), 100u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace opmill
