// What one caller can take from another.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/execution/executor.h"
#include "server/status/retry_delay.h"
#include "tests/server/executor_fixture.h"

namespace opmill {
namespace {

class ExecutorCallers : public ExecutorTest {
 protected:
  static ExecutionRequest AskAs(const std::string& name, Caller& caller, OperatorDesc desc) {
    ExecutionRequest request = caller.Ask(std::move(desc));
    request.origin.caller = name;
    return request;
  }
  absl::StatusOr<std::shared_ptr<Execution>> TryBeginAs(const std::string& name,
                                                        const OperatorDesc& desc) {
    callers_.push_back(std::make_unique<Caller>());
    auto begun = TryBegin(AskAs(name, *callers_.back(), desc));
    if (begun.ok()) begun_.push_back(*begun);
    return begun;
  }
  // As many as it gets.
  size_t BeginAllAs(const std::string& name, const OperatorDesc& desc) {
    size_t count = 0;
    while (TryBeginAs(name, desc).ok()) ++count;
    return count;
  }
  void EndAll() {
    for (const auto& each : begun_) executor_->Cancel(each, absl::CancelledError("The end."));
    begun_.clear();
    while (device_.pending_runs() > 0) device_.Complete();
    ExpectIdle();
  }

  std::vector<std::unique_ptr<Caller>> callers_;
  std::vector<std::shared_ptr<Execution>> begun_;
};

TEST_F(ExecutorCallers, OneAloneGetsEveryByteAndAnotherStillGetsSome) {
  Restart({.max_bytes_in_flight = 64 * 64});
  EXPECT_EQ(BeginAllAs("ann", SumOf(15)), 64u);  // 64 bytes each
  EXPECT_TRUE(TryBeginAs("bob", SumOf(15)).ok()) << "64 bytes beyond the limit";
  const absl::Status refused = TryBeginAs("bob", SumOf(15)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsRetryable(refused));
  EndAll();
}

TEST_F(ExecutorCallers, TheOneWithMoreLeavesRoomForTheOther) {
  Restart({.max_executions = 16});
  ASSERT_TRUE(TryBeginAs("bob", SumOf(1)).ok());
  EXPECT_EQ(BeginAllAs("ann", SumOf(1)), 13u);
  EXPECT_EQ(std::string(TryBeginAs("ann", SumOf(1)).status().message()),
            "The server has 16 executions (max_executions) under way, or has the last 2 free for "
            "other callers.");
  EXPECT_EQ(BeginAllAs("bob", SumOf(1)), 2u);
  // What ann returns goes to bob, up to half.
  for (int i = 0; i < 16; ++i) {
    executor_->Cancel(begun_[static_cast<size_t>(1 + i % 13)], absl::CancelledError("Room."));
    if (!TryBeginAs("ann", SumOf(1)).ok()) TryBeginAs("bob", SumOf(1)).IgnoreError();
  }
  EndAll();
}

TEST_F(ExecutorCallers, ASilentCallerLosesItsRoomOnlyToOnesWithLess) {
  Restart({.max_executions = 4});
  ASSERT_TRUE(TryBeginAs("bob", SumOf(1)).ok());
  ASSERT_EQ(BeginAllAs("ann", SumOf(1)), 3u);
  absl::SleepFor(absl::Milliseconds(150));  // all are silent, and may lose their room
  EXPECT_TRUE(TryBeginAs("ann", SumOf(1)).ok());
  EXPECT_TRUE(begun_[0]->status().ok()) << "bob has less than ann";
  EXPECT_FALSE(begun_[1]->status().ok());
  EndAll();
}

TEST_F(ExecutorCallers, SmallOnesDoNotWaitBehindAQueueOfOthers) {
  Warm(SumOf(256 << 10));
  Warm(SumOf(5));
  ASSERT_TRUE(TryBeginAs("bob", SumOf(5)).ok());
  SendAll(begun_.back());
  device_.Complete();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(TryBeginAs("ann", SumOf(256 << 10)).ok());
    SendAll(begun_.back());
  }
  ASSERT_LE(device_.pending_runs(), 16u) << "at most 16 MiB of ann are ahead of bob";
  ASSERT_TRUE(TryBeginAs("bob", SumOf(5)).ok());
  SendAll(begun_.back());
  const size_t bobs = callers_.size() - 1;
  for (size_t before = device_.pending_runs(); before > 0; --before) device_.Complete();
  EXPECT_EQ(callers_[bobs]->ready, 1);
  while (device_.pending_runs() > 0) device_.Complete();
  for (const auto& caller : callers_) EXPECT_TRUE(caller->status.ok()) << "nothing is lost";
  EndAll();
}

TEST_F(ExecutorCallers, HoldsTheLimitsOfEachCaller) {
  Restart({.caller = {.executions = 2, .bytes = 100}});
  EXPECT_EQ(BeginAllAs("ann", SumOf(1)), 2u);
  EXPECT_EQ(BeginAllAs("bob", SumOf(11)), 2u);
  EXPECT_EQ(BeginAllAs("cid", SumOf(14)), 1u);
  executor_->Cancel(begun_[0], absl::CancelledError("Room."));
  EXPECT_TRUE(TryBeginAs("ann", SumOf(1)).ok());
  EndAll();
}

TEST_F(ExecutorCallers, CountsAnExecutionForItsCallerBeforeItHasItsMemory) {
  Restart({.caller = {.executions = 1}});
  device_.HoldNextAllocation();
  Caller first;
  std::thread beginning([this, &first] {
    const auto begun = TryBegin(AskAs("ann", first, SumOf(1)));
    EXPECT_TRUE(begun.ok()) << begun.status();
    if (begun.ok()) executor_->Cancel(*begun, absl::CancelledError("The end."));
  });
  device_.WaitUntilAllocating();
  EXPECT_FALSE(TryBeginAs("ann", SumOf(1)).ok());
  EXPECT_TRUE(TryBeginAs("bob", SumOf(1)).ok());
  device_.ReleaseAllocation();
  beginning.join();
  EndAll();
}

TEST_F(ExecutorCallers, HoldsTheLimitsOfACallerAgainstManyThreads) {
  for (const CallerLimits& limits : {CallerLimits{.executions = 1}, CallerLimits{.bytes = 8}}) {
    Restart({.caller = limits});
    Warm(SumOf(1));
    std::atomic<int> together = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([this, &together] {
        for (int j = 0; j < 5000; ++j) {
          Caller caller;
          ExecutionRequest request = AskAs("ann", caller, SumOf(1));  // of 8 bytes
          const auto begun = executor_->Begin(request);
          if (!begun.ok()) continue;
          EXPECT_EQ(++together, 1);
          std::this_thread::yield();
          --together;
          executor_->Cancel(*begun, absl::CancelledError("Room."));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ExpectIdle();
  }
}

TEST_F(ExecutorCallers, OneBeyondItsRateTakesNoRoom) {
  Restart({.max_executions = 1, .caller = {.rate = 0.001}});
  ASSERT_TRUE(TryBeginAs("ann", SumOf(1)).ok());
  absl::SleepFor(absl::Milliseconds(150));  // silent, and may lose its room
  EXPECT_FALSE(TryBeginAs("ann", SumOf(1)).ok());
  EXPECT_TRUE(begun_[0]->status().ok()) << begun_[0]->status();
  EndAll();
}

TEST_F(ExecutorCallers, ARefusedBeginDoesNotCountForTheRate) {
  Restart({.max_executions = 1, .caller = {.rate = 0.001}});
  ASSERT_TRUE(TryBeginAs("ann", SumOf(1)).ok());
  SendAll(begun_[0]);
  EXPECT_FALSE(TryBeginAs("bob", SumOf(1)).ok()) << "there is no room";
  device_.Complete();
  executor_->Finish(begun_[0]);
  EXPECT_TRUE(TryBeginAs("bob", SumOf(1)).ok());
  EndAll();
}

TEST_F(ExecutorCallers, HoldsTheRateOfEachCaller) {
  Restart({.caller = {.rate = 0.001}});
  EXPECT_EQ(BeginAllAs("ann", SumOf(1)), 1u);
  EXPECT_EQ(BeginAllAs("bob", SumOf(1)), 1u);
  const absl::Status refused = TryBeginAs("ann", SumOf(1)).status();
  EXPECT_EQ(std::string(refused.message()),
            "The caller begins more than 0.001 executions per second (caller_limits, rate).");
  EXPECT_GT(RetryDelayOf(refused), absl::Seconds(100));
  EndAll();
}

TEST_F(ExecutorCallers, StreamsAreSharedToo) {
  Restart({.max_streams = 4});
  std::vector<RequestOrigin> open;
  const auto try_open = [&](const std::string& name) {
    RequestOrigin origin = {.rpc = "Test", .peer = "test", .caller = name};
    absl::Status begun = executor_->BeginStream(origin);
    if (begun.ok()) open.push_back(origin);
    return begun;
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(try_open("ann").ok());
  const absl::Status refused = try_open("ann");
  EXPECT_EQ(std::string(refused.message()),
            "The server has 4 ExecuteStream calls (max_streams) open.");
  EXPECT_TRUE(IsRetryable(refused));
  open.pop_back();
  EXPECT_TRUE(try_open("bob").ok());
  executor_.reset();
  open.clear();  // the transport may let go of a call later
}

TEST_F(ExecutorCallers, AreCountedByName) {
  ASSERT_TRUE(TryBeginAs("ann", SumOf(1)).ok());
  SendAll(begun_.back());
  device_.Complete();
  executor_->Finish(begun_.back());
  ASSERT_TRUE(TryBeginAs("", SumOf(1)).ok());
  executor_->Cancel(begun_.back(), absl::CancelledError("The end."));
  const auto callers = statistics_->callers();
  ASSERT_EQ(callers.size(), 3u);
  EXPECT_EQ(callers[0]->name, "address");
  EXPECT_EQ(callers[0]->cancelled(), 1u);
  EXPECT_EQ(callers[2]->name, "ann");
  EXPECT_EQ(callers[2]->succeeded(), 1u);
  EXPECT_EQ(callers[2]->work_bytes, 8u);
  EndAll();
}

}  // namespace
}  // namespace opmill
