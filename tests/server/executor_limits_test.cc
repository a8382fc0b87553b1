// What the executor takes at a time, in which order, and how it ends.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "server/execution/executor.h"
#include "server/status/retry_delay.h"
#include "tests/server/executor_fixture.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

class ExecutorLimits : public ExecutorTest {
 protected:
  static OperatorDesc Large() { return SumOf(5u << 20); }
  static Compilations::Wanted Wanted(std::stop_token cancelled = {}) {
    return {.program = ProgramOf(SumOf(5)), .limited = {}, .cancelled = std::move(cancelled)};
  }
};

TEST_F(ExecutorLimits, SmallOnesPassWhileALargeOneRuns) {
  Warm(Large());
  Warm(SumOf(5));
  Caller large_callers[2];
  std::vector<std::shared_ptr<Execution>> large;
  for (Caller& caller : large_callers) {
    large.push_back(Begin(caller, Large()));
    SendAll(large.back());
  }
  EXPECT_EQ(device_.pending_runs(), 1u) << "large ones go to the device one at a time";
  const GatedDevice::PendingRun running = device_.Take();
  for (int i = 0; i < 300; ++i) {
    Caller caller;
    const auto small = Begin(caller, SumOf(5));
    SendAll(small);
    ASSERT_EQ(device_.pending_runs(), 1u);
    device_.Complete();
    EXPECT_EQ(caller.ready, 1);
    executor_->Finish(small);
  }
  EXPECT_EQ(large_callers[0].ready, 0);
  running.done(RunStatistics{});
  EXPECT_EQ(large_callers[0].ready, 1);
  device_.Complete();
  EXPECT_EQ(large_callers[1].ready, 1);
  for (const auto& execution : large) executor_->Finish(execution);
}

TEST_F(ExecutorLimits, ALargeOneIsNotStarvedByEndlessSmallOnes) {
  Warm(Large());
  Warm(SumOf(5));
  constexpr size_t kSmall = 1000;
  std::vector<Caller> callers(kSmall);
  std::vector<std::shared_ptr<Execution>> small;
  for (Caller& caller : callers) {
    small.push_back(Begin(caller, SumOf(5)));
    SendAll(small.back());
  }
  EXPECT_LT(device_.pending_runs(), kSmall) << "some wait where a cancel costs nothing";
  Caller large_caller;
  const auto large = Begin(large_caller, Large());
  SendAll(large);
  // It goes to the device at once, behind those that are there.
  size_t before = 0;
  while (device_.pending_runs() > 0) {
    device_.Complete();
    if (large_caller.ready == 0) ++before;
  }
  EXPECT_LT(before, kSmall / 2);
  for (const Caller& caller : callers) EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(large_caller.ready, 1);
  for (const auto& execution : small) executor_->Finish(execution);
  executor_->Finish(large);
  ExpectIdle();
}

TEST_F(ExecutorLimits, WhatIsCancelledInTheQueueNeverReachesTheDevice) {
  Warm(Large());
  std::vector<Caller> callers(20);
  std::vector<std::shared_ptr<Execution>> large;
  for (Caller& caller : callers) {
    large.push_back(Begin(caller, Large()));
    SendAll(large.back());
  }
  for (size_t i = 1; i < large.size(); i += 2) {
    executor_->Cancel(large[i], absl::CancelledError("Not wanted."));
  }
  for (int i = 0; i < 10; ++i) device_.Complete();
  EXPECT_EQ(device_.pending_runs(), 0u);
  for (size_t i = 0; i < large.size(); ++i) {
    EXPECT_EQ(callers[i].ready, 1);
    EXPECT_EQ(callers[i].status.ok(), i % 2 == 0);
    executor_->Finish(large[i]);
  }
  ExpectIdle();
}

TEST_F(ExecutorLimits, RefusesMoreExecutionsThanItsLimit) {
  Restart({.max_executions = 2});
  Caller callers[2];
  const auto first = Begin(callers[0], SumOf(5));
  const auto second = Begin(callers[1], SumOf(5));
  const uint64_t used = executor_->memory().used();
  Caller refused;
  const absl::Status status = TryBegin(refused.Ask(SumOf(5))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "The server has 2 executions (max_executions) under way.");
  EXPECT_TRUE(IsRetryable(status));
  EXPECT_EQ(refused.ready, 0);
  EXPECT_EQ(executor_->open_executions(), 2u);
  EXPECT_EQ(executor_->memory().used(), used);
  executor_->Cancel(first, absl::CancelledError("Room."));
  executor_->Cancel(second, absl::CancelledError("Room."));
  ExpectNextOneWorks();
}

TEST_F(ExecutorLimits, AnInputThatTheServerIsSlowToCopyIsNotStalled) {
  Restart({.max_executions = 1});
  Warm(SumOf(5));
  Caller caller;
  absl::Notification copy;
  ExecutionRequest request = caller.Ask(SumOf(5));
  request.sources = {{.read = [&copy](uint64_t, absl::Span<std::byte>) {
    copy.WaitForNotification();
    return absl::OkStatus();
  }}};
  const auto execution = *TryBegin(std::move(request));
  absl::SleepFor(absl::Milliseconds(150));  // longer than one without input keeps its place
  Caller refused;
  const bool is_refused = !TryBegin(refused.Ask(SumOf(5))).ok();
  copy.Notify();
  ASSERT_TRUE(is_refused);
  device_.Complete();
  EXPECT_EQ(caller.ready, 1);
  EXPECT_TRUE(caller.status.ok()) << caller.status;
  executor_->Finish(execution);
  ExpectIdle();
}

TEST_F(ExecutorLimits, BeginsNoneWhileTheQueueIsFull) {
  Restart({.max_queued = 2});
  Warm(Large());
  // One runs, two wait; one that waits for its input is no burden to the queue.
  std::vector<Caller> callers(4);
  std::vector<std::shared_ptr<Execution>> begun;
  for (Caller& caller : callers) begun.push_back(Begin(caller, Large()));
  for (size_t i = 0; i < 3; ++i) SendAll(begun[i]);
  Caller refused;
  const absl::Status status = TryBegin(refused.Ask(SumOf(5))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "The server has 2 executions (max_queued) waiting for the device.");
  EXPECT_TRUE(IsRetryable(status));
  device_.Complete();
  Caller next;
  const auto last = Begin(next, SumOf(5));
  executor_->Cancel(last, absl::CancelledError("The end."));
  for (const auto& execution : begun) {
    executor_->Cancel(execution, absl::CancelledError("The end."));
  }
  while (device_.pending_runs() > 0) device_.Complete();
  ExpectNextOneWorks();
}

TEST_F(ExecutorLimits, BeginsAndCompilesNothingWhileMemoryIsShort) {
  Restart({.memory_limit = 12345});
  EXPECT_FALSE(executor_->SetShortOfMemory(true));
  Caller refused;
  const absl::Status status = TryBegin(refused.Ask(SumOf(5))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "The server has taken nearly all of the 12345 bytes (memory_limit) that it may.");
  EXPECT_TRUE(IsRetryable(status));
  EXPECT_EQ(
      executor_->Compile(Wanted(), [](const absl::StatusOr<CachedOperator>&) { ADD_FAILURE(); }),
      status);
  EXPECT_TRUE(executor_->SetShortOfMemory(false));
  ExpectNextOneWorks();
}

TEST_F(ExecutorLimits, RefusesBytesThatDoNotFitNowUntilTheyDo) {
  Restart({.max_bytes_in_flight = 100});
  Caller holder;
  const auto holding = Begin(holder, SumOf(15));  // 60 bytes in, 4 out
  Caller refused;
  const absl::Status status = TryBegin(refused.Ask(SumOf(10))).status();
  EXPECT_EQ(std::string(status.message()),
            "There is no room for a buffer of 40 bytes now: 64 of 100 bytes (max_bytes_in_flight) "
            "are in use.");
  EXPECT_TRUE(IsRetryable(status));
  // The input would fit, the output would not: nothing is kept of it.
  EXPECT_FALSE(TryBegin(refused.Ask(SumOf(9))).ok());
  EXPECT_EQ(executor_->memory().used(), 64u);
  executor_->Cancel(holding, absl::CancelledError("Room."));
  ExpectNextOneWorks();
}

TEST_F(ExecutorLimits, RefusesPermanentlyWhatNeverFits) {
  Restart({.max_tensor_bytes = 80, .max_bytes_in_flight = 100});
  Caller caller;
  const absl::Status tensor = TryBegin(caller.Ask(SumOf(21))).status();
  EXPECT_EQ(tensor, absl::ResourceExhaustedError(
                        "A tensor of 84 bytes is larger than max_tensor_bytes (80)."));
  const OperatorDesc two_of_80 =
      *Validate(HardmaxDesc{.input = {DataType::kFloat32, {20}, {}}, .axes = {0}});
  const absl::Status sum = TryBegin(caller.Ask(two_of_80)).status();
  EXPECT_EQ(sum, absl::ResourceExhaustedError("The execution needs 160 bytes for its inputs and "
                                              "outputs, more than max_bytes_in_flight (100)."));
  // 4 bytes in, 8 GiB out.
  const OperatorDesc huge = *Validate(
      HardmaxDesc{.input = {DataType::kFloat32, {1u << 16, 1u << 15}, {0, 0}}, .axes = {0}});
  EXPECT_THAT(std::string(TryBegin(caller.Ask(huge)).status().message()),
              HasSubstr("A tensor of 8589934592 bytes is larger"));
  EXPECT_EQ(caller.ready, 0);
  ExpectIdle();
}

// Another try may go well where others hold memory now, and only there.
TEST_F(ExecutorLimits, ReportsADeviceWithoutMemoryAsLackOfRoom) {
  Warm(SumOf(5));
  Caller other_caller;
  std::shared_ptr<Execution> other;
  for (const bool is_alone : {true, false}) {
    if (!is_alone) other = Begin(other_caller, SumOf(5));
    Caller caller;
    device_.RefuseBuffers(Residency::kUpload);
    const absl::Status status = TryBegin(caller.Ask(SumOf(5))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(IsRetryable(status), !is_alone);
    device_.RefuseBuffers(Residency::kReadback);
    SendAll(Begin(caller, SumOf(5)));
    EXPECT_EQ(caller.ready, 1);
    EXPECT_EQ(caller.status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(IsRetryable(caller.status), !is_alone);
    device_.RefuseBuffers(std::nullopt);
  }
  executor_->Cancel(other, absl::CancelledError("The end."));
  ExpectIdle();
  ExpectNextOneWorks();
}

TEST_F(ExecutorLimits, DrainingRefusesTheNewAndEndsTheOld) {
  Warm(SumOf(5));
  Caller old_caller;
  const auto old = Begin(old_caller, SumOf(5));
  executor_->Drain();
  Caller new_caller;
  EXPECT_EQ(TryBegin(new_caller.Ask(SumOf(5))).status(),
            absl::UnavailableError(
                "The server is draining: it ends what it has begun and takes nothing new."));
  SendAll(old);
  device_.Complete();
  EXPECT_TRUE(old_caller.status.ok()) << old_caller.status;
  executor_->Finish(old);
  ExpectIdle();
}

TEST_F(ExecutorLimits, ALostDeviceFailsWhatItRanAndServesTheNext) {
  Warm(SumOf(5));
  EXPECT_EQ(device_.compiled(), 1);
  Caller caller;
  SendAll(Begin(caller, SumOf(5)));
  device_.Fail(absl::UnavailableError("The device was lost."));
  EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(caller.status, absl::UnavailableError("The device was lost."));
  WaitUntil([this] { return cache_->statistics().entries == 0; });
  ExpectIdle();
  ExpectNextOneWorks();
  EXPECT_EQ(device_.compiled(), 2) << "what was compiled for the lost device was used again";
}

TEST_F(ExecutorLimits, AFailedCompilationEndsItsExecutionAlone) {
  device_.FailCompilations(absl::InternalError("The shader does not compile."));
  Caller caller;
  const auto execution = Begin(caller, SumOf(5));
  WaitUntil([&] { return caller.ready == 1; });
  EXPECT_EQ(caller.status, absl::InternalError("The shader does not compile."));
  SendAll(execution);
  EXPECT_EQ(caller.ready, 1);
  device_.FailCompilations(absl::OkStatus());
  WaitUntil([this] { return executor_->open_executions() == 0; });
  ExpectNextOneWorks();
}

TEST_F(ExecutorLimits, IsDestroyedAfterTheRunsThatNobodyWaitsFor) {
  Caller caller;
  SendAll(Begin(caller, SumOf(5)));
  GatedDevice::PendingRun run = device_.Take();
  {
    Caller unused;
    auto execution = TryBegin(unused.Ask(SumOf(5)));
    executor_->Cancel(*execution, absl::CancelledError("The end."));
  }
  // The server ends what is under way before it destroys the executor.
  std::atomic<bool> destroyed = false;
  std::thread destroyer([this, &destroyed] {
    executor_.reset();
    destroyed = true;
  });
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(destroyed);
  run.done(RunStatistics{});
  destroyer.join();
  EXPECT_EQ(caller.ready, 1);
  statistics_ = std::make_unique<Statistics>();  // the result of the run was not finished
}

TEST_F(ExecutorLimits, CompilesForThoseWhoOnlyAskForThat) {
  std::atomic<int> done = 0;
  const absl::Status posted =
      executor_->Compile(Wanted(), [&done](const absl::StatusOr<CachedOperator>& found) {
        EXPECT_TRUE(found.ok());
        ++done;
      });
  EXPECT_TRUE(posted.ok()) << posted;
  WaitUntil([&done] { return done == 1; });
  EXPECT_EQ(device_.compiled(), 1);
  ExpectNextOneWorks();
  EXPECT_EQ(device_.compiled(), 1);
}

TEST_F(ExecutorLimits, CompilesNothingForACallerWhoIsGone) {
  std::atomic<int> done = 0;
  std::stop_source gone;
  gone.request_stop();
  const absl::Status posted = executor_->Compile(
      Wanted(gone.get_token()), [&done](const absl::StatusOr<CachedOperator>& found) {
        EXPECT_TRUE(absl::IsCancelled(found.status()));
        ++done;
      });
  EXPECT_TRUE(posted.ok()) << posted;
  WaitUntil([&done] { return done == 1; });
  EXPECT_EQ(device_.compiled(), 0);
}

TEST_F(ExecutorLimits, StopsACompilationWhenAllItsCallersAreGone) {
  device_.HoldCompiler();
  std::atomic<int> done = 0;
  std::stop_source gone;
  ASSERT_TRUE(executor_
                  ->Compile(Wanted(gone.get_token()),
                            [&done](const absl::StatusOr<CachedOperator>& found) {
                              EXPECT_TRUE(absl::IsCancelled(found.status()));
                              ++done;
                            })
                  .ok());
  device_.WaitUntilCompiling(1);
  Caller caller;
  const auto execution = Begin(caller, SumOf(5));
  const auto joins = [this] { return cache_->statistics().waits == 1; };
  WaitUntil(joins);
  gone.request_stop();  // the execution still waits
  EXPECT_EQ(done, 1);
  absl::SleepFor(absl::Milliseconds(20));
  device_.WaitUntilCompiling(1);
  executor_->Cancel(execution, absl::CancelledError("The end."));
  device_.WaitUntilAbandoned(1);
  EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(device_.compiled(), 0);
  device_.ReleaseCompiler();
  ExpectNextOneWorks();
}

TEST_F(ExecutorLimits, ACallerWhoLeavesDoesNotWaitForAWorker) {
  device_.HoldCompiler();
  std::atomic<int> done = 0;
  const auto count = [&done](const absl::StatusOr<CachedOperator>&) { ++done; };
  const int busy = static_cast<int>(executor_->workers()) - 1;
  for (int i = 0; i < busy; ++i) {
    Compilations::Wanted wanted = Wanted();
    wanted.program = ProgramOf(SumOf(100 + static_cast<uint32_t>(i)));
    ASSERT_TRUE(executor_->Compile(std::move(wanted), count).ok());
  }
  device_.WaitUntilCompiling(busy);
  std::stop_source gone;
  ASSERT_TRUE(executor_->Compile(Wanted(gone.get_token()), count).ok());
  gone.request_stop();
  WaitUntil([&done] { return done == 1; });
  device_.ReleaseCompiler();
  WaitUntil([&] { return done == busy + 1; });
}

TEST_F(ExecutorLimits, CompilesNothingNewWhileDraining) {
  executor_->Drain();
  const auto never = [](const absl::StatusOr<CachedOperator>&) { FAIL() << "It was refused."; };
  EXPECT_TRUE(absl::IsUnavailable(executor_->Compile(Wanted(), never)));
}

// Four bytes, and 16 MiB of reading.
TEST_F(ExecutorLimits, ABroadcastIsAsLargeAsTheWorkItMakes) {
  const absl::StatusOr<OperatorDesc> broadcast =
      Validate(ReduceDesc{.function = ReduceFunction::kSum,
                          .input = {DataType::kFloat32, {5u << 20}, {0}},
                          .axes = {0}});
  ASSERT_TRUE(broadcast.ok()) << broadcast.status();
  Warm(*broadcast);
  Caller callers[2];
  std::vector<std::shared_ptr<Execution>> executions;
  for (Caller& caller : callers) {
    executions.push_back(Begin(caller, *broadcast));
    SendAll(executions.back());
  }
  EXPECT_EQ(device_.pending_runs(), 1u);
  for (Caller& caller : callers) {
    device_.Complete();
    EXPECT_EQ(caller.ready, 1);
  }
  for (const auto& execution : executions) executor_->Finish(execution);
}

}  // namespace
}  // namespace opmill
