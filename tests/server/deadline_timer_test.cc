#include "server/host/deadline_timer.h"

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);  // only a hang takes this long

TEST(DeadlineTimer, CallsBackInTheOrderOfTheTimesAndNotBeforeThem) {
  DeadlineTimer timer;
  std::vector<int> order;  // used by the timer's thread until `last`
  absl::Notification last;
  const absl::Time start = SteadyNow();
  timer.Add(start + absl::Milliseconds(60), [&] {
    EXPECT_GE(SteadyNow(), start + absl::Milliseconds(60));
    order.push_back(3);
    last.Notify();
  });
  timer.Add(start + absl::Milliseconds(30), [&] { order.push_back(1); });
  timer.Add(start + absl::Milliseconds(30), [&] { order.push_back(2); });
  timer.Add(start - absl::Seconds(1), [&] { order.push_back(0); });
  ASSERT_TRUE(last.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(DeadlineTimer, NeverCallsBackForInfiniteFuture) {
  DeadlineTimer timer;
  const auto held = std::make_shared<int>(7);
  EXPECT_EQ(timer.Add(absl::InfiniteFuture(), [held] { FAIL(); }), DeadlineTimer::kNone);
  EXPECT_EQ(held.use_count(), 1);
  timer.Remove(DeadlineTimer::kNone);
}

TEST(DeadlineTimer, AnEarlierTimeIsNotDelayedByALaterOne) {
  DeadlineTimer timer;
  // Beyond the range of the system clock.
  timer.Add(SteadyNow() + absl::Hours(24 * 365 * 1000), [] { FAIL(); });
  absl::SleepFor(absl::Milliseconds(20));
  absl::Notification called;
  timer.Add(SteadyNow() + absl::Milliseconds(20), [&called] { called.Notify(); });
  EXPECT_TRUE(called.WaitForNotificationWithTimeout(kLong));
}

TEST(DeadlineTimer, ReleasesRemovedCallbacks) {
  DeadlineTimer timer;
  const auto held = std::make_shared<int>(7);
  const auto handle =
      timer.Add(SteadyNow() + absl::Milliseconds(50), [held] { FAIL() << "was removed"; });
  EXPECT_EQ(held.use_count(), 2);
  timer.Remove(handle);
  EXPECT_EQ(held.use_count(), 1);
  timer.Remove(handle);
  absl::Notification later;
  timer.Add(SteadyNow() + absl::Milliseconds(80), [&later] { later.Notify(); });
  EXPECT_TRUE(later.WaitForNotificationWithTimeout(kLong));
}

TEST(DeadlineTimer, CallbacksMayUseTheTimer) {
  DeadlineTimer timer;
  absl::Notification called;
  const auto victim = timer.Add(SteadyNow() + absl::Milliseconds(100), [] { FAIL(); });
  timer.Add(SteadyNow(), [&] {
    timer.Remove(victim);
    timer.Add(SteadyNow(), [&called] { called.Notify(); });
  });
  EXPECT_TRUE(called.WaitForNotificationWithTimeout(kLong));
  absl::SleepFor(absl::Milliseconds(120));
}

TEST(DeadlineTimer, DestructorDoesNotCallPendingCallbacks) {
  const auto held = std::make_shared<int>(7);
  {
    DeadlineTimer timer;
    for (int i = 0; i < 100; ++i) timer.Add(SteadyNow() + absl::Hours(1), [held] { FAIL(); });
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace opmill
