#include "server/execution/execution_queues.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/any_execution.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ExecutionQueuesTest : public testing::Test {
 protected:
  std::shared_ptr<Execution> Enter(int at = 0, std::shared_ptr<CallerAccount> caller = nullptr,
                                   int32_t priority = 0) {
    std::shared_ptr<Execution> execution = AnyExecution(std::move(caller), priority);
    queues_.Enter(execution, AtMilliseconds(at));
    return execution;
  }
  std::shared_ptr<Execution> EnterForDevice(uint64_t work_bytes) {
    std::shared_ptr<Execution> execution = Enter();
    queues_.AwaitDevice(*execution, work_bytes, AtMilliseconds(0));
    return execution;
  }

  std::shared_ptr<Execution> EnterForDevice(const std::shared_ptr<CallerAccount>& caller,
                                            uint64_t work_bytes, int at = 0, int32_t priority = 0) {
    std::shared_ptr<Execution> execution = Enter(at, caller, priority);
    queues_.AwaitDevice(*execution, work_bytes, AtMilliseconds(at));
    return execution;
  }
  using Stall = ExecutionQueues::Stall;
  // Those that receive no input.
  std::vector<std::shared_ptr<Execution>> Stalled(int at) {
    const auto silent = [](const Execution&, Stall why) { return why == Stall::kNoInput; };
    return queues_.FindStalled(AtMilliseconds(at), silent).executions;
  }
  // Gives the device all that it gets; returns how many of them are of `caller`.
  size_t Send(const std::shared_ptr<CallerAccount>& caller) {
    size_t count = 0;
    while (const auto next = queues_.NextForDevice()) {
      if (next->request().origin.account == caller) ++count;
      sent_.push_back(next);
    }
    return count;
  }

  Statistics statistics_;
  CallerAccounts accounts_{TokenBucket(), statistics_};
  const std::shared_ptr<CallerAccount> ann_ = accounts_.Find("ann", "", AtMilliseconds(0));
  const std::shared_ptr<CallerAccount> bob_ = accounts_.Find("bob", "", AtMilliseconds(0));
  ExecutionQueues queues_;
  std::vector<std::shared_ptr<Execution>> sent_;
};

TEST_F(ExecutionQueuesTest, GivesTheDeviceSmallOnesInOrderAndNoMoreThanItNeeds) {
  std::vector<std::shared_ptr<Execution>> executions;
  for (int i = 0; i < 300; ++i) executions.push_back(EnterForDevice(100));
  size_t given = 0;
  while (const auto next = queues_.NextForDevice()) {
    EXPECT_EQ(next, executions[given]);
    ++given;
  }
  EXPECT_EQ(given, 192u);
  queues_.RunEnded(*executions[0]);
  EXPECT_EQ(queues_.NextForDevice(), executions[given]);
  EXPECT_EQ(queues_.NextForDevice(), nullptr);
}

TEST_F(ExecutionQueuesTest, GivesTheDeviceLargeOnesThatAreNotTooMuchTogether) {
  const auto first = EnterForDevice(20 * kMebibyte);
  const auto second = EnterForDevice(12 * kMebibyte);
  const auto third = EnterForDevice(4 * kMebibyte);
  EXPECT_EQ(queues_.NextForDevice(), first);
  EXPECT_EQ(queues_.NextForDevice(), second);
  EXPECT_EQ(queues_.NextForDevice(), nullptr);  // 32 MiB are on the device
  const auto small = EnterForDevice(4 * kMebibyte - 1);
  EXPECT_EQ(queues_.NextForDevice(), small);  // does not wait for a large one
  queues_.RunEnded(*second);
  EXPECT_EQ(queues_.NextForDevice(), third);
}

TEST_F(ExecutionQueuesTest, GivesTheDeviceAnyOneLargeExecution) {
  const auto huge = EnterForDevice(4096 * kMebibyte);
  const auto next = EnterForDevice(4 * kMebibyte);
  EXPECT_EQ(queues_.NextForDevice(), huge);
  EXPECT_EQ(queues_.NextForDevice(), nullptr);
  queues_.RunEnded(*huge);
  EXPECT_EQ(queues_.NextForDevice(), next);
}

TEST_F(ExecutionQueuesTest, SilentExecutionsStallBeforePartialUploads) {
  const auto uploading = Enter(0);
  queues_.AwaitInput(*uploading, AtMilliseconds(0));
  EXPECT_THAT(Stalled(4'999), IsEmpty());
  EXPECT_THAT(Stalled(5'000), ElementsAre(uploading));
  const auto silent = Enter(5'000);
  EXPECT_THAT(Stalled(5'099), ElementsAre(uploading));
  EXPECT_THAT(Stalled(5'100), ElementsAre(silent));
  queues_.AwaitInput(*uploading, AtMilliseconds(5'050));  // more input arrived
  queues_.AwaitOperator(*silent, AtMilliseconds(5'200));  // all input arrived
  EXPECT_THAT(Stalled(10'049), IsEmpty());
}

TEST_F(ExecutionQueuesTest, StalledOnesAreOfTheCallersThatMayLoseThem) {
  const auto of_ann = Enter(0, ann_);
  const auto of_bob = Enter(0, bob_);
  const auto stalled =
      queues_.FindStalled(AtMilliseconds(100), [this](const Execution& execution, Stall) {
        return execution.request().origin.account == bob_;
      });
  EXPECT_THAT(stalled.executions, ElementsAre(of_bob));
}

TEST_F(ExecutionQueuesTest, ALongUploadMayBeTooSlowEvenIfInputArrives) {
  const auto any = [](const Execution&, Stall) { return true; };
  const auto dripping = Enter(0);
  const auto new_one = Enter(1'000);
  for (int at = 1'000; at <= 5'000; at += 1'000) {
    queues_.AwaitInput(*dripping, AtMilliseconds(at));
    queues_.AwaitInput(*new_one, AtMilliseconds(at));
  }
  EXPECT_THAT(Stalled(5'000), IsEmpty());
  EXPECT_THAT(queues_.FindStalled(AtMilliseconds(4'999), any).executions, IsEmpty());
  const auto stalled = queues_.FindStalled(AtMilliseconds(5'000), any);
  EXPECT_EQ(stalled.why, Stall::kSlowInput);
  EXPECT_THAT(stalled.executions, ElementsAre(dripping));
  const auto silent = Enter(5'000);
  EXPECT_THAT(queues_.FindStalled(AtMilliseconds(5'100), any).executions, ElementsAre(silent))
      << "before those that receive input";
}

TEST_F(ExecutionQueuesTest, CallersTakeTurns) {
  for (int i = 0; i < 300; ++i) EnterForDevice(ann_, 100);
  EXPECT_EQ(Send(ann_), 192u) << "a caller alone has the device";
  for (int i = 0; i < 300; ++i) EnterForDevice(bob_, 100);
  for (int i = 0; i < 150; ++i) queues_.RunEnded(*sent_[static_cast<size_t>(i)]);
  EXPECT_EQ(Send(bob_), 96u) << "half of what the device gets";
}

TEST_F(ExecutionQueuesTest, ASmallOneWaitsForFewBytesOfAnother) {
  EnterForDevice(bob_, 100);
  EXPECT_EQ(Send(bob_), 1u);
  for (int i = 0; i < 100; ++i) EnterForDevice(ann_, kMebibyte);
  EXPECT_EQ(Send(ann_), 16u) << "as bob has used the device just now";
  const auto next = EnterForDevice(bob_, 100);
  EXPECT_EQ(queues_.NextForDevice(), next);
  queues_.RunEnded(*sent_[0]);
  queues_.RunEnded(*next);
  EnterForDevice(ann_, kMebibyte, /*at=*/10'000);
  EXPECT_EQ(Send(ann_), 85u) << "ann is alone again";
}

TEST_F(ExecutionQueuesTest, AHugeOneDoesNotKeepOthersFromTheDevice) {
  const auto huge = EnterForDevice(ann_, 8192 * kMebibyte);
  EXPECT_EQ(queues_.NextForDevice(), huge);
  EnterForDevice(ann_, 8192 * kMebibyte);
  EXPECT_EQ(queues_.NextForDevice(), nullptr);
  const auto large = EnterForDevice(bob_, 20 * kMebibyte);
  const auto also_huge = EnterForDevice(bob_, 33 * kMebibyte);
  EXPECT_EQ(queues_.NextForDevice(), large);
  EXPECT_EQ(queues_.NextForDevice(), nullptr) << "one huge one at a time";
  queues_.RunEnded(*large);
  queues_.RunEnded(*huge);
  EXPECT_EQ(queues_.NextForDevice(), also_huge) << "ann has had her turn";
}

TEST_F(ExecutionQueuesTest, ALargeOneIsNotStarvedByEndlessSmallerOnesOfOthers) {
  for (int i = 0; i < 8; ++i) EnterForDevice(bob_, 4 * kMebibyte);
  EXPECT_EQ(Send(bob_), 8u);
  const auto large = EnterForDevice(ann_, 30 * kMebibyte);
  size_t before = 0;
  for (size_t ended = 0; ended < sent_.size() && sent_.back() != large; ++ended) {
    ASSERT_LT(before, 32u) << "bob always has a next one";
    EnterForDevice(bob_, 4 * kMebibyte);
    queues_.RunEnded(*sent_[ended]);
    before += Send(bob_);
  }
  EXPECT_EQ(sent_.back(), large);
  EXPECT_GT(before, 0u) << "bob has his share meanwhile";
}

TEST_F(ExecutionQueuesTest, APriorityCountsAmongTheOnesOfItsCaller) {
  const auto huge = EnterForDevice(ann_, 64 * kMebibyte);
  EXPECT_EQ(queues_.NextForDevice(), huge);
  const auto low = EnterForDevice(ann_, 64 * kMebibyte, 0, /*priority=*/-1);
  const auto high = EnterForDevice(ann_, 64 * kMebibyte, 0, /*priority=*/1);
  const auto of_bob = EnterForDevice(bob_, 64 * kMebibyte);
  std::vector<std::shared_ptr<Execution>> order = {huge};
  for (int i = 0; i < 3; ++i) {
    queues_.RunEnded(*order.back());
    order.push_back(queues_.NextForDevice());
  }
  EXPECT_THAT(order, ElementsAre(huge, high, of_bob, low));
}

TEST_F(ExecutionQueuesTest, ForgetsWhatWasRemoved) {
  const auto execution = EnterForDevice(1);
  queues_.Remove(*execution);
  queues_.Remove(*execution);
  queues_.AwaitDevice(*execution, 1, AtMilliseconds(0));
  EXPECT_EQ(queues_.NextForDevice(), nullptr);
}

}  // namespace
}  // namespace opmill
