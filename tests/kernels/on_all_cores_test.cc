#include "kernels/base/on_all_cores.h"

#include <atomic>
#include <barrier>
#include <cstddef>
#include <new>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace opmill {
namespace {

TEST(OnAllCores, TakesEachNumberOnce) {
  for (const size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> taken(count);
    OnAllCores(count, [&](size_t i) { return ++taken[i] > 0; });
    for (const std::atomic<int>& times : taken) EXPECT_EQ(times, 1);
  }
}

TEST(OnAllCores, CallsSideBySide) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor";
  std::barrier both(2);
  OnAllCores(2, [&](size_t) {
    both.arrive_and_wait();
    return true;
  });
}

TEST(OnAllCores, EndsAfterAFailure) {
  std::atomic<size_t> calls = 0;
  OnAllCores(1'000'000, [&](size_t i) {
    ++calls;
    return i < 10;
  });
  EXPECT_GT(calls, 10u);
  EXPECT_LE(calls, 10u + std::thread::hardware_concurrency());
}

TEST(OnAllCores, ThrowsWhatACallThrows) {
  for (const size_t failing : {0, 1, 7}) {
    EXPECT_THROW(OnAllCores(8,
                            [&](size_t i) -> bool {
                              if (i == failing) throw std::bad_alloc();
                              return true;
                            }),
                 std::bad_alloc);
  }
}

}  // namespace
}  // namespace opmill
