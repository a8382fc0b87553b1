#include "server/host/worker_pool.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <stop_token>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace opmill {
namespace {

TEST(WorkerPool, FinishesAllWorkBeforeItIsGone) {
  int done = 0;
  {
    WorkerPool pool(1);
    for (int i = 0; i < 10; ++i) pool.Post([&done] { ++done; });
    pool.PostLowPriority([&done] { ++done; });
  }
  EXPECT_EQ(done, 11);
}

TEST(WorkerPool, LowPriorityComesAfterOtherWork) {
  std::vector<int> order;
  std::latch posted(1);
  {
    WorkerPool pool(1);
    pool.Post([&posted] { posted.wait(); });
    pool.PostLowPriority([&order] { order.push_back(2); });
    pool.Post([&order] { order.push_back(1); });
    posted.count_down();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(WorkerPool, WorkThatKeepsComingDoesNotKeepLowPriorityWaiting) {
  uint32_t ahead = 0;
  bool is_done = false;
  {
    std::latch posted(1);
    std::function<void()> again;
    WorkerPool pool(1);
    again = [&] {  // as copies in steps do
      posted.wait();
      if (is_done || ahead == 1000) return;
      ++ahead;
      pool.Post(again);
    };
    pool.Post(again);
    pool.PostLowPriority([&is_done] { is_done = true; });
    posted.count_down();
  }
  EXPECT_TRUE(is_done);
  EXPECT_LE(ahead, WorkerPool::kMostAhead + 1);
}

TEST(WorkerPool, LongWorkLeavesAThreadForOtherWork) {
  std::latch may_end(1);
  std::latch others(3);
  std::atomic<int> long_now = 0;
  std::atomic<int> most_long = 0;
  {
    WorkerPool pool(3);
    const auto work = [&] {
      int most = most_long;
      const int now = ++long_now;
      while (now > most && !most_long.compare_exchange_weak(most, now)) {
      }
      may_end.wait();
      --long_now;
    };
    for (int i = 0; i < 4; ++i) pool.PostLong(work);
    for (int i = 0; i < 4; ++i) pool.PostLowPriority(work);
    for (int i = 0; i < 3; ++i) pool.Post([&others] { others.count_down(); });
    others.wait();  // while both other threads are held
    while (long_now < 2) std::this_thread::yield();
    may_end.count_down();
  }
  EXPECT_EQ(long_now, 0);
  EXPECT_EQ(most_long, 2);
}

// Short work that ran while no long work could begin does not count.
TEST(WorkerPool, LongWorkGoesAheadOfLowPriority) {
  std::vector<int> order;
  std::latch held(1);
  std::latch may_end(1);
  std::latch others(100);
  {
    WorkerPool pool(2);
    pool.PostLong([&] {
      held.count_down();
      may_end.wait();
    });
    held.wait();
    pool.PostLowPriority([&order] { order.push_back(2); });
    pool.PostLong([&order] { order.push_back(1); });
    for (int i = 0; i < 100; ++i) pool.Post([&others] { others.count_down(); });
    others.wait();
    may_end.count_down();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(WorkerPool, CancelledWorkDoesNotWaitForLongWork) {
  std::atomic<int> order = 0;
  int other = 0;
  std::latch held(1);
  std::latch may_end(1);
  std::latch cancelled(4);
  std::stop_source gone;
  std::stop_source gone_before;
  gone_before.request_stop();
  {
    WorkerPool pool(2);
    pool.PostLong([&] {
      held.count_down();
      may_end.wait();
    });
    held.wait();
    pool.PostLong([&] { other = ++order; });
    for (const std::stop_source& source : {gone, gone_before}) {
      const auto work = [&] {
        ++order;
        cancelled.count_down();
      };
      pool.PostLong(work, source.get_token());
      pool.PostLowPriority(work, source.get_token());
    }
    gone.request_stop();
    cancelled.wait();  // while the other thread is held
    may_end.count_down();
  }
  EXPECT_EQ(other, 5);
  gone.request_stop();  // of no effect
}

// A stop may come at any time.
TEST(WorkerPool, RunsWorkOnceHoweverItIsCancelled) {
  std::atomic<int> done = 0;
  constexpr int kRounds = 2000;
  {
    WorkerPool pool(3);
    for (int i = 0; i < kRounds; ++i) {
      std::stop_source gone;
      std::thread other([&] { gone.request_stop(); });
      pool.PostLong([&done] { ++done; }, gone.get_token());
      other.join();
    }
  }
  EXPECT_EQ(done, kRounds);
}

TEST(WorkerPool, LongWorkKeepsItsTurn) {
  std::vector<int> order;
  std::latch posted(1);
  {
    WorkerPool pool(1);
    pool.Post([&posted] { posted.wait(); });
    pool.Post([&order] { order.push_back(1); });
    pool.PostLong([&order] { order.push_back(2); });
    pool.Post([&order] { order.push_back(3); });
    posted.count_down();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace opmill
