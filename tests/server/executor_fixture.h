// An executor on a gated device, and the events that a caller sees.
#ifndef OPMILL_TESTS_SERVER_EXECUTOR_FIXTURE_H_
#define OPMILL_TESTS_SERVER_EXECUTOR_FIXTURE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "server/execution/executor.h"
#include "server/observe/log.h"
#include "tests/server/gated_device.h"

namespace opmill {

// Counts calls of on_ready, and keeps the status.
struct Caller {
  std::atomic<int> ready = 0;
  absl::Status status;  // the execution's status at that time

  ExecutionRequest Ask(OperatorDesc desc, absl::Time deadline = absl::InfiniteFuture()) {
    return {.origin = {.rpc = "Test", .peer = "test", .execution_id = 1},
            .op = std::move(desc),
            .deadline = deadline,
            .on_ready = [this](const std::shared_ptr<Execution>& execution) {
              status = execution->status();
              ++ready;
            }};
  }
};

class ExecutorTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLong = absl::Seconds(20);  // only a hang takes this long

  static void SetUpTestSuite() {
    static const bool started = [] {
      StartLog(LogFormat::kText, LogLevel::kWarning);
      return true;
    }();
    static_cast<void>(started);
  }

  void SetUp() override { Restart({}); }

  void TearDown() override {
    executor_.reset();
    for (size_t stage = 0; stage < kOpenStages; ++stage) {
      EXPECT_EQ(statistics_->in_stage(static_cast<Stage>(stage)), 0u) << "stage " << stage;
    }
  }

  void Restart(Limits limits) {
    if (limits.max_bytes_in_flight == 0) limits.max_bytes_in_flight = uint64_t{1} << 30;
    executor_.reset();
    statistics_ = std::make_unique<Statistics>();
    cache_ = OperatorCache::Create(device_, {.capacity = 64});
    executor_ = std::make_unique<Executor>(device_, *cache_, *statistics_, limits);
  }

  // `count` FLOAT32 elements in, one out.
  static OperatorDesc SumOf(uint32_t count) {
    return *Validate(ReduceDesc{
        .function = ReduceFunction::kSum, .input = {DataType::kFloat32, {count}, {}}, .axes = {0}});
  }

  const OperatorStatistics& OfSums() const {
    return statistics_->operators()[OperatorIndex(SumOf(1))];
  }

  absl::StatusOr<std::shared_ptr<Execution>> TryBegin(ExecutionRequest request) {
    return executor_->Begin(request);
  }
  std::shared_ptr<Execution> Begin(Caller& caller, const OperatorDesc& desc,
                                   absl::Time deadline = absl::InfiniteFuture()) {
    auto begun = TryBegin(caller.Ask(desc, deadline));
    EXPECT_TRUE(begun.ok()) << begun.status();
    return begun.ok() ? *begun : nullptr;
  }

  // Sends bytes [from, to) of zeros.
  void Send(const std::shared_ptr<Execution>& execution, uint64_t from, uint64_t to,
            uint32_t tensor_index = 0, char byte = 0) {
    const std::string bytes(to - from, byte);
    const std::vector<grpc::Slice> slices = {grpc::Slice(bytes)};
    executor_->Receive(execution,
                       {.tensor_index = tensor_index,
                        .offset = from,
                        .data = Payload(&slices, 0, 0, bytes.size())},
                       "chunks[0]");
  }
  void SendAll(const std::shared_ptr<Execution>& execution) {
    Send(execution, 0, SpannedBytes(execution->inputs()[0]));
  }

  // Compiles the operator, so that later executions do not wait for it.
  void Warm(const OperatorDesc& desc) { ASSERT_TRUE(cache_->Get(desc).ok()); }

  static void WaitUntil(const std::function<bool()>& condition) {
    const absl::Time patience = absl::Now() + kLong;
    while (!condition()) {
      ASSERT_LT(absl::Now(), patience) << "the condition did not become true";
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  void ExpectStage(Stage expected) {
    for (size_t stage = 0; stage < kOpenStages; ++stage) {
      EXPECT_EQ(statistics_->in_stage(static_cast<Stage>(stage)),
                stage == static_cast<size_t>(expected) ? 1u : 0u)
          << "stage " << stage;
    }
  }

  void ExpectIdle() {
    ExpectStage(Stage::kEnded);
    EXPECT_EQ(executor_->open_executions(), 0u);
    EXPECT_EQ(executor_->memory().used(), 0u);
  }

  // Checks that slots and memory were released: another execution succeeds.
  void ExpectNextOneWorks() {
    Caller caller;
    const auto execution = Begin(caller, SumOf(5));
    SendAll(execution);
    device_.Complete();
    EXPECT_EQ(caller.ready, 1);
    EXPECT_TRUE(caller.status.ok()) << caller.status;
    executor_->Finish(execution);
    ExpectIdle();
  }

  GatedDevice device_;
  std::unique_ptr<Statistics> statistics_;
  std::unique_ptr<OperatorCache> cache_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SERVER_EXECUTOR_FIXTURE_H_
