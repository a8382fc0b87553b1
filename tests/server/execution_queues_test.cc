#include "server/execution/execution_queues.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/any_execution.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

absl::Time At(int milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

class ExecutionQueuesTest : public testing::Test {
 protected:
  std::shared_ptr<Execution> Enter(int at = 0) {
    std::shared_ptr<Execution> execution = AnyExecution();
    queues_.Enter(execution, At(at));
    return execution;
  }
  std::shared_ptr<Execution> EnterForDevice(uint64_t work_bytes) {
    std::shared_ptr<Execution> execution = Enter();
    queues_.AwaitDevice(*execution, work_bytes, At(0));
    return execution;
  }

  ExecutionQueues queues_;
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
  queues_.AwaitInput(*uploading, At(0));
  EXPECT_THAT(queues_.Stalled(At(4'999)), IsEmpty());
  EXPECT_THAT(queues_.Stalled(At(5'000)), ElementsAre(uploading));
  const auto silent = Enter(5'000);
  EXPECT_THAT(queues_.Stalled(At(5'099)), ElementsAre(uploading));
  EXPECT_THAT(queues_.Stalled(At(5'100)), ElementsAre(silent));
  queues_.AwaitInput(*uploading, At(5'050));  // more input arrived
  queues_.AwaitOperator(*silent, At(5'200));  // all input arrived
  EXPECT_THAT(queues_.Stalled(At(10'049)), IsEmpty());
}

TEST_F(ExecutionQueuesTest, ForgetsWhatWasRemoved) {
  const auto execution = EnterForDevice(1);
  queues_.Remove(*execution);
  queues_.Remove(*execution);
  queues_.AwaitDevice(*execution, 1, At(0));
  EXPECT_EQ(queues_.NextForDevice(), nullptr);
}

}  // namespace
}  // namespace opmill
