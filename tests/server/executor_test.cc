#include "server/execution/executor.h"

#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#if OPMILL_CPU_DEVICE
#include "kernels/base/steady_time.h"
#include "kernels/cpu/device/cpu_device.h"
#endif
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "tests/server/executor_fixture.h"

namespace opmill {
namespace {

const absl::Status& Cancelled() {
  static const absl::Status* const status =
      new absl::Status(absl::CancelledError("The test cancelled it."));
  return *status;
}

TEST_F(ExecutorTest, TakesAnExecutionThroughItsStages) {
  Caller caller;
  const auto execution = Begin(caller, SumOf(1000));
  EXPECT_TRUE(execution->uploading());
  EXPECT_EQ(executor_->open_executions(), 1u);
  EXPECT_EQ(executor_->memory().used(), 4004u);
  ExpectStage(Stage::kUploading);
  Send(execution, 0, 0);
  Send(execution, 0, 1);
  Send(execution, 1, 3999);
  EXPECT_FALSE(execution->uploaded());
  Send(execution, 3999, 4000);
  EXPECT_TRUE(execution->uploaded());
  GatedDevice::PendingRun run = device_.Take();
  ExpectStage(Stage::kRunning);
  EXPECT_EQ(run.bindings.inputs[0].bytes().size(), 4000u);
  ASSERT_EQ(run.bindings.outputs.size(), 1u);
  EXPECT_EQ(caller.ready, 0);
  run.done(
      RunStatistics{.queued = absl::Seconds(1), .executed = absl::Seconds(2), .batch_size = 3});
  EXPECT_EQ(caller.ready, 1);
  ExpectStage(Stage::kStreaming);
  EXPECT_NE(execution->output(0), nullptr);
  EXPECT_EQ(execution->report().times.compute, absl::Seconds(2));
  EXPECT_GE(execution->report().times.queue, absl::Seconds(1));
  EXPECT_EQ(execution->report().batch_size, 3u);
  const std::stop_token abandoned = run.abandoned;
  run = {};
  executor_->Finish(execution);
  EXPECT_FALSE(abandoned.stop_requested());
  EXPECT_EQ(execution->output(0), nullptr);
  EXPECT_TRUE(execution->status().ok());
  EXPECT_EQ(caller.ready, 1);
  ExpectIdle();
  const OperatorStatistics& sums = OfSums();
  EXPECT_EQ(sums.succeeded(), 1u);
  EXPECT_EQ(sums.input_bytes, 4000u);
  EXPECT_EQ(sums.output_bytes, 4u);
  EXPECT_EQ(sums.compute.snapshot().sum, 2'000'000'000u);
  EXPECT_GE(sums.total.snapshot().sum, sums.upload.snapshot().sum);
  EXPECT_EQ(sums.batch_size.snapshot().sum, 3u);
}

TEST_F(ExecutorTest, KeepsTheBytesThatAMessageUnderWayHolds) {
  Caller caller;
  const auto execution = Begin(caller, SumOf(5));
  SendAll(execution);
  device_.Complete(std::byte{0x5A});
  std::shared_ptr<BudgetedBuffer> under_way = execution->output(0);
  ASSERT_NE(under_way, nullptr);
  executor_->Finish(execution);
  EXPECT_EQ(under_way->buffer->bytes()[3], std::byte{0x5A});
  EXPECT_EQ(executor_->memory().used(), 4u);
  under_way = nullptr;
  ExpectIdle();
}

#if OPMILL_CPU_DEVICE
// No other thread has a part in it, not even in one that begins as another ends.
TEST_F(ExecutorTest, ComputesSmallOnesOnTheThreadThatBringsThem) {
  const std::unique_ptr<Device> device = CreateCpuDevice();
  const auto cache = OperatorCache::Create(*device, {});
  const OperatorDesc desc = SumOf(1000);
  ASSERT_TRUE(cache->Get(desc).ok());
  executor_ = std::make_unique<Executor>(*device, *cache, *statistics_,
                                         Limits{.max_bytes_in_flight = 1 << 20});
  std::vector<std::shared_ptr<Execution>> ready_here;
  const std::thread::id here = std::this_thread::get_id();
  std::function<void()> bring = [&] {
    ExecutionRequest request = {.origin = {.rpc = "Test"}, .op = desc};
    request.on_ready = [&](const std::shared_ptr<Execution>& execution) {
      if (std::this_thread::get_id() == here) ready_here.push_back(execution);
      if (ready_here.size() < 3) bring();
    };
    const auto execution = executor_->Begin(request);
    ASSERT_TRUE(execution.ok()) << execution.status();
    SendAll(*execution);
  };
  bring();
  ASSERT_EQ(ready_here.size(), 3u);
  for (const auto& execution : ready_here) {
    EXPECT_TRUE(execution->status().ok()) << execution->status();
    executor_->Finish(execution);
  }
  executor_.reset();
}
#endif

// Where an execution may be when its end comes.
class EndAtStage : public ExecutorTest {
 protected:
  enum class Where {
    kUploading,
    kUploadingAndCompiling,
    kCompiling,
    kQueued,
    kRunning,
    kStreaming
  };

  // Begins an execution and takes it there.
  std::shared_ptr<Execution> Reach(Where where, Caller& caller, absl::Time deadline) {
    const OperatorDesc desc = where == Where::kQueued ? Large() : SumOf(7);
    const bool held = where == Where::kUploadingAndCompiling || where == Where::kCompiling;
    if (held) {
      device_.HoldCompiler();
    } else {
      Warm(desc);
    }
    if (where == Where::kQueued) {
      blocker_ = Begin(blocking_caller_, desc);
      SendAll(blocker_);
    }
    const auto execution = Begin(caller, desc, deadline);
    if (execution == nullptr) return nullptr;  // Begin has told why
    if (held) device_.WaitUntilCompiling(1);
    if (where == Where::kUploading || where == Where::kUploadingAndCompiling) {
      Send(execution, 0, 8);
    } else {
      SendAll(execution);
    }
    if (where == Where::kStreaming) device_.Complete();
    return execution;
  }

  // Lets go what Reach has held, and expects that nothing is left.
  void Release(Where where) {
    device_.ReleaseCompiler();
    if (where == Where::kQueued || where == Where::kRunning) {
      EXPECT_EQ(device_.pending_runs(), 1u);
      const GatedDevice::PendingRun run = device_.Take();
      EXPECT_EQ(run.abandoned.stop_requested(), where == Where::kRunning);
      if (where == Where::kRunning) {
        run.done(absl::CancelledError("The run was abandoned."));
      } else {
        run.done(RunStatistics{.batch_size = 1});
      }
    }
    if (blocker_ != nullptr) executor_->Finish(blocker_);
    blocker_ = nullptr;
    WaitUntil([this] { return executor_->memory().used() == 0; });
    EXPECT_EQ(device_.pending_runs(), 0u) << "what had ended was run";
  }

  // One of them is in the device's hands at a time.
  static OperatorDesc Large() { return SumOf(5u << 20); }

  static constexpr Where kAll[] = {Where::kUploading, Where::kUploadingAndCompiling,
                                   Where::kCompiling, Where::kQueued,
                                   Where::kRunning,   Where::kStreaming};

  Caller blocking_caller_;
  std::shared_ptr<Execution> blocker_;
};

TEST_F(EndAtStage, CancelTellsTheCallerOnceAndLeavesNothing) {
  for (const Where where : kAll) {
    SCOPED_TRACE(static_cast<int>(where));
    Restart({});
    Caller caller;
    const auto execution = Reach(where, caller, absl::InfiniteFuture());
    ASSERT_NE(execution, nullptr);
    executor_->Cancel(execution, Cancelled());
    EXPECT_EQ(execution->status(), Cancelled());
    // A caller whose results were ready has been told; it sees the end when it writes.
    EXPECT_EQ(caller.ready, 1);
    EXPECT_EQ(caller.status, where == Where::kStreaming ? absl::OkStatus() : Cancelled());
    EXPECT_EQ(execution->output(0), nullptr);
    EXPECT_EQ(executor_->open_executions(), blocker_ == nullptr ? 0u : 1u);
    EXPECT_EQ(executor_->memory().used() == 0, where != Where::kRunning && where != Where::kQueued);
    executor_->Cancel(execution, absl::InternalError("Too late."));
    executor_->Finish(execution);
    SendAll(execution);
    EXPECT_EQ(execution->status(), Cancelled());
    Release(where);
    EXPECT_EQ(caller.ready, 1);
    ExpectIdle();
    EXPECT_EQ(OfSums().cancelled(), 1u);
    ExpectNextOneWorks();
  }
}

TEST_F(EndAtStage, TheDeadlineEndsItWhereverItIs) {
  for (const Where where : kAll) {
    SCOPED_TRACE(static_cast<int>(where));
    Restart({});
    Caller caller;
    const absl::Time deadline =
        SteadyNow() + absl::Milliseconds(800);  // that Reach keeps on a busy machine
    const auto execution = Reach(where, caller, deadline);
    ASSERT_NE(execution, nullptr);
    WaitUntil([&] { return !execution->status().ok(); });
    EXPECT_GE(SteadyNow(), deadline);
    EXPECT_EQ(execution->status(), absl::DeadlineExceededError("The execution's time is over."));
    Release(where);
    WaitUntil([&] { return caller.ready == 1; });
    WaitUntil([&] { return executor_->open_executions() == 0; });
    ExpectIdle();
    EXPECT_EQ(caller.ready, 1);
    EXPECT_EQ(OfSums().cancelled(), 1u);
    ExpectNextOneWorks();
  }
}

TEST_F(EndAtStage, TheNextLargeOneGoesWhenTheDeviceHasLetGoOfTheOneBefore) {
  Warm(Large());
  Caller callers[2];
  const std::shared_ptr<Execution> executions[] = {Begin(callers[0], Large()),
                                                   Begin(callers[1], Large())};
  for (const auto& execution : executions) SendAll(execution);
  GatedDevice::PendingRun run = device_.Take();
  executor_->Cancel(executions[0], Cancelled());
  EXPECT_TRUE(executor_->has_runs());
  EXPECT_EQ(device_.pending_runs(), 0u);
  std::exchange(run, {}).done(absl::CancelledError("The run was abandoned."));
  EXPECT_EQ(callers[0].ready, 1);
  EXPECT_EQ(callers[0].status, Cancelled());
  device_.Complete();
  EXPECT_TRUE(callers[1].status.ok()) << callers[1].status;
  EXPECT_FALSE(executor_->has_runs());
  executor_->Finish(executions[1]);
  ExpectIdle();
}

// The device may compute the next one on this thread.
TEST_F(EndAtStage, TellsTheCallerBeforeItSubmitsTheNextOne) {
  Warm(Large());
  size_t submitted_before = 0;
  Caller callers[2];
  ExecutionRequest request = callers[0].Ask(Large());
  request.on_ready = [&](const std::shared_ptr<Execution>& /*execution*/) {
    ++callers[0].ready;
    submitted_before = device_.pending_runs();
  };
  const std::shared_ptr<Execution> executions[] = {*TryBegin(std::move(request)),
                                                   Begin(callers[1], Large())};
  for (const auto& execution : executions) SendAll(execution);
  device_.Complete();
  EXPECT_EQ(callers[0].ready, 1);
  EXPECT_EQ(submitted_before, 0u);
  EXPECT_EQ(device_.pending_runs(), 1u);
  device_.Complete();
  EXPECT_EQ(callers[1].ready, 1);
  for (const auto& execution : executions) executor_->Finish(execution);
  ExpectIdle();
}

TEST_F(ExecutorTest, RefusesADeadlineThatHasPassed) {
  Caller caller;
  const absl::Status status = TryBegin(caller.Ask(SumOf(5), SteadyNow())).status();
  EXPECT_EQ(status,
            absl::DeadlineExceededError("The execution's time is over before it could begin."));
  EXPECT_EQ(caller.ready, 0);
  ExpectIdle();
}

TEST_F(ExecutorTest, RacesOfCancelAndCompletionEndEachExecutionOnce) {
  Warm(SumOf(5));
  for (int i = 0; i < 2000; ++i) {
    Caller caller;
    const auto execution = Begin(caller, SumOf(5));
    SendAll(execution);
    std::thread canceller([&] { executor_->Cancel(execution, Cancelled()); });
    device_.Complete();
    canceller.join();
    EXPECT_EQ(caller.ready, 1);
    EXPECT_EQ(execution->status(), Cancelled());
  }
  ExpectIdle();
  EXPECT_EQ(OfSums().cancelled(), 2000u);
}

TEST_F(ExecutorTest, RacesOfCompilationAndUploadRunEachExecutionOnce) {
  for (uint32_t i = 1; i <= 500; ++i) {
    Caller caller;
    const auto execution = Begin(caller, SumOf(i));  // each is compiled, on another thread
    SendAll(execution);
    device_.Complete();
    EXPECT_EQ(caller.ready, 1);
    executor_->Finish(execution);
  }
  EXPECT_EQ(device_.pending_runs(), 0u);
  ExpectIdle();
}

TEST_F(ExecutorTest, SendsChunksThatDoNotFitBackWithTheirField) {
  struct Case {
    uint64_t from, to;
    uint32_t tensor_index;
    std::string field, sentence;
  };
  // 13 INT8 elements: a buffer of 16 bytes, 8 of which have come.
  const OperatorDesc desc =
      *Validate(HardmaxDesc{.input = {DataType::kFloat16, {7}, {}}, .axes = {0}});
  for (const Case& c : std::vector<Case>{
           {8, 10, 1, "chunks[0].tensor_index",
            "chunks[0].tensor_index (1) is not below the number of inputs (1) of hardmax."},
           {9, 10, 0, "chunks[0].offset",
            "chunks[0].offset (9) leaves out bytes 8 to 8 of input 0; chunks of a tensor come in "
            "order."},
           {7, 10, 0, "chunks[0].offset",
            "chunks[0].offset (7) overlaps bytes that have arrived: the next chunk of input 0 "
            "starts at byte 8."},
           {8, 17, 0, "chunks[0].data",
            "chunks[0] ends at byte 17, past the end of input 0, which has 14 bytes."}}) {
    Caller caller;
    const auto execution = Begin(caller, desc);
    Send(execution, 0, 8);
    Send(execution, c.from, c.to, c.tensor_index);
    EXPECT_EQ(caller.ready, 1);
    EXPECT_EQ(caller.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(caller.status), c.field);
    EXPECT_EQ(std::string(caller.status.message()), c.sentence);
    EXPECT_EQ(executor_->memory().used(), 0u);
  }
  WaitUntil([this] { return executor_->open_executions() == 0; });
}

TEST_F(ExecutorTest, TakesTheBytesThatRoundAnInputUp) {
  Caller caller;
  const auto execution =
      Begin(caller, *Validate(HardmaxDesc{.input = {DataType::kFloat16, {7}, {}}, .axes = {0}}));
  Send(execution, 0, 16);
  device_.Complete();
  EXPECT_TRUE(caller.status.ok());
  EXPECT_EQ(execution->output_bytes(), std::vector<uint64_t>{14});
  executor_->Finish(execution);
}

TEST_F(ExecutorTest, RefusesBytesAfterTheEndOfAnInput) {
  Warm(SumOf(5));
  Caller caller;
  const auto execution = Begin(caller, SumOf(5));
  SendAll(execution);
  Send(execution, 20, 20);
  EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(FieldOf(caller.status), "chunks[0]");
  EXPECT_EQ(std::string(caller.status.message()),
            "chunks[0] comes after the end of input 0: all of its 20 bytes have arrived.");
  device_.Complete();
  ExpectIdle();
}

TEST_F(ExecutorTest, RefusesAnInputThatEndsTooEarly) {
  Caller caller;
  const auto execution = Begin(caller, SumOf(5));
  Send(execution, 0, 13);
  executor_->EndInputs(execution, "end_of_inputs came");
  EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(FieldOf(caller.status), "chunks");
  EXPECT_EQ(std::string(caller.status.message()),
            "end_of_inputs came with 13 of the 20 bytes of input 0; 7 are missing.");
  EXPECT_EQ(OfSums().failed(), 1u);
  ExpectIdle();
}

TEST_F(ExecutorTest, EndOfInputsLeavesACompleteOneAlone) {
  Caller caller;
  const auto execution = Begin(caller, SumOf(5));
  SendAll(execution);
  executor_->EndInputs(execution, "end_of_inputs came");
  device_.Complete();
  EXPECT_TRUE(caller.status.ok()) << caller.status;
  executor_->Finish(execution);
}

}  // namespace
}  // namespace opmill
