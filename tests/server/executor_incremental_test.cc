// Executions that the device computes while their input arrives.
#include <algorithm>
#include <cstring>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/cpu/device/cpu_device.h"
#include "tests/server/executor_fixture.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

// Counts how often the processor's device compiles.
class CountingCpu : public Device {
 public:
  explicit CountingCpu(std::unique_ptr<Device> cpu) : cpu_(std::move(cpu)) {}

  int compiled() const { return compiled_; }

  const DeviceInfo& info() const override { return cpu_->info(); }
  DeviceCounters counters() const override { return cpu_->counters(); }
  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) override {
    ++compiled_;
    return cpu_->Compile(program, abandoned);
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes,
                                                   Residency residency) override {
    return cpu_->Allocate(size_bytes, residency);
  }
  void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    cpu_->Run(std::move(compiled), std::move(bindings), std::move(abandoned), std::move(done));
  }
  absl::StatusOr<std::unique_ptr<IncrementalRun>> BeginIncremental(
      const std::shared_ptr<const CompiledProgram>& compiled, const Bindings& bindings) override {
    return cpu_->BeginIncremental(compiled, bindings);
  }

 private:
  const std::unique_ptr<Device> cpu_;
  int compiled_ = 0;
};

class IncrementalExecutorTest : public ExecutorTest {
 protected:
  static constexpr uint32_t kCount = 1'000'000;
  static constexpr uint64_t kBytes = uint64_t{kCount} * sizeof(float);
  static inline const Limits kLimits = {.max_bytes_in_flight = 1 << 23, .max_queued = 1};

  void SetUp() override { Use({.threads = 1, .min_incremental_bytes = kBytes}); }
  void TearDown() override {
    ExecutorTest::TearDown();
    executor_.reset();
    EXPECT_EQ(cpu_->counters().buffer_bytes_in_use, 0u);
  }

  void Use(const CpuDeviceOptions& options, const Limits& limits = kLimits) {
    Use(CreateCpuDevice(options), limits);
  }
  void Use(std::unique_ptr<Device> device, const Limits& limits) {
    executor_.reset();
    cpu_ = std::move(device);
    statistics_ = std::make_unique<Statistics>();
    cache_ = OperatorCache::Create(*cpu_, {});
    executor_ = std::make_unique<Executor>(*cpu_, *cache_, *statistics_, limits);
  }

  // Sends elements [from, to), each with the value 1.
  void SendOnes(const std::shared_ptr<Execution>& execution, uint64_t from, uint64_t to) {
    const std::vector<float> ones(to - from, 1.0f);
    const std::vector<grpc::Slice> slices = {grpc::Slice(ones.data(), ones.size() * sizeof(float))};
    executor_->Receive(
        execution,
        {.offset = from * sizeof(float), .data = Payload(&slices, 0, 0, slices[0].size())},
        "chunks[0]");
  }

  static InputSource ReadOnes() {
    return {.read = [](uint64_t, absl::Span<std::byte> to) {
      const std::vector<float> ones(to.size() / sizeof(float), 1.0f);
      std::memcpy(to.data(), ones.data(), to.size());
      return absl::OkStatus();
    }};
  }

  uint64_t IncrementalBytes(const OperatorDesc& desc) {
    return (*cpu_->Compile(desc))->cost().incremental_bytes;
  }

  static float ResultOf(const Execution& execution) {
    float result = 0;
    std::memcpy(&result, execution.output(0)->buffer->bytes().data(), sizeof(result));
    return result;
  }

  std::unique_ptr<Device> cpu_;
};

TEST_F(IncrementalExecutorTest, ComputesWhileTheInputArrivesAndKeepsNoneOfIt) {
  Caller caller;
  const auto execution = Begin(caller, SumOf(kCount));
  EXPECT_LT(executor_->memory().used(), kBytes / 50);
  SendOnes(execution, 0, 333'333);
  ExpectStage(Stage::kUploading);
  EXPECT_TRUE(execution->uploading());
  EXPECT_EQ(execution->output(0), nullptr);
  SendOnes(execution, 333'333, 333'334);
  SendOnes(execution, 333'334, kCount);
  EXPECT_EQ(caller.ready, 1);
  EXPECT_TRUE(caller.status.ok()) << caller.status;
  ExpectStage(Stage::kStreaming);
  EXPECT_EQ(ResultOf(*execution), kCount);
  EXPECT_EQ(executor_->memory().used(), sizeof(float)) << "only the output is left";
  EXPECT_GE(execution->work_bytes(), kBytes);
  executor_->Finish(execution);
  ExpectIdle();
  const OperatorStatistics& sums = OfSums();
  EXPECT_EQ(sums.succeeded(), 1u);
  EXPECT_EQ(sums.input_bytes, kBytes);
  EXPECT_GT(sums.compute.snapshot().sum, 0u);
  EXPECT_EQ(cpu_->counters().runs, 1u);
}

TEST_F(IncrementalExecutorTest, CompilesAnOperatorOnce) {
  auto counting = std::make_unique<CountingCpu>(
      CreateCpuDevice({.threads = 1, .min_incremental_bytes = kBytes}));
  const CountingCpu& device = *counting;
  Use(std::move(counting), kLimits);
  for (int i = 0; i < 5; ++i) {
    Caller caller;
    const auto execution = Begin(caller, SumOf(kCount));
    EXPECT_LT(executor_->memory().used(), kBytes / 50);
    SendOnes(execution, 0, kCount);
    EXPECT_EQ(ResultOf(*execution), kCount);
    executor_->Finish(execution);
  }
  EXPECT_EQ(device.compiled(), 1);
  EXPECT_EQ(cache_->statistics().misses, 1u);
  EXPECT_EQ(cache_->statistics().hits, 4u);
  ExpectIdle();
}

TEST_F(IncrementalExecutorTest, ARefusedOperatorDisplacesNone) {
  Use({.threads = 1, .min_incremental_bytes = kBytes},
      {.max_bytes_in_flight = 1 << 23, .max_executions = 1});
  Caller callers[2];
  const auto execution = Begin(callers[0], SumOf(kCount));
  EXPECT_FALSE(TryBegin(callers[1].Ask(SumOf(kCount + 1))).ok());
  EXPECT_EQ(cache_->statistics().entries, 1u);
  EXPECT_EQ(cache_->statistics().misses, 1u);
  executor_->Cancel(execution, absl::CancelledError("Enough."));
  ExpectIdle();
}

TEST_F(IncrementalExecutorTest, TakesMoreInputThanTheBudgetHasRoomFor) {
  Caller callers[5];
  std::vector<std::shared_ptr<Execution>> executions;
  for (Caller& caller : callers) executions.push_back(Begin(caller, SumOf(kCount)));
  for (const auto& execution : executions) SendOnes(execution, 0, kCount);
  for (const auto& execution : executions) {
    EXPECT_EQ(ResultOf(*execution), kCount);
    executor_->Finish(execution);
  }
  ExpectIdle();
}

TEST_F(IncrementalExecutorTest, TakesAnInputThatIsLargerThanTheBudget) {
  const uint64_t held = IncrementalBytes(SumOf(kCount)) + sizeof(float);
  Use({.threads = 1, .min_incremental_bytes = kBytes},
      {.max_bytes_in_flight = held, .caller = {.bytes = held}});
  Caller caller;
  const auto execution = Begin(caller, SumOf(kCount));
  SendOnes(execution, 0, kCount);
  EXPECT_EQ(ResultOf(*execution), kCount);
  executor_->Finish(execution);
  ExpectIdle();
  ExecutionRequest shared = caller.Ask(SumOf(kCount));
  shared.sources = {ReadOnes()};
  EXPECT_EQ(TryBegin(std::move(shared)).status().message(),
            absl::StrCat("The execution needs ", kBytes + 4,
                         " bytes for its inputs and outputs, "
                         "more than max_bytes_in_flight (",
                         held, ")."));
}

TEST_F(IncrementalExecutorTest, ACancellationEndsItBetweenChunks) {
  Caller caller;
  const auto execution = Begin(caller, SumOf(kCount));
  SendOnes(execution, 0, 500'000);
  executor_->Cancel(execution, absl::CancelledError("Enough."));
  EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(caller.status, absl::CancelledError("Enough."));
  SendOnes(execution, 500'000, kCount);
  EXPECT_EQ(caller.ready, 1);
  ExpectIdle();
  EXPECT_EQ(cpu_->counters().runs, 0u);
}

TEST_F(IncrementalExecutorTest, ARaceOfCancelAndInputEndsEachExecutionOnce) {
  for (int i = 0; i < 200; ++i) {
    Caller caller;
    const auto execution = Begin(caller, SumOf(kCount));
    std::thread canceller([&] { executor_->Cancel(execution, absl::CancelledError("Enough.")); });
    for (uint64_t at = 0; at < kCount; at += 100'000) SendOnes(execution, at, at + 100'000);
    canceller.join();
    executor_->Finish(execution);
    EXPECT_EQ(caller.ready, 1);
    EXPECT_EQ(execution->status(), absl::CancelledError("Enough."));
  }
  ExpectIdle();
}

TEST_F(IncrementalExecutorTest, RefusesAChunkThatIsNotTheNextOne) {
  Caller caller;
  const auto execution = Begin(caller, SumOf(kCount));
  SendOnes(execution, 0, 10);
  SendOnes(execution, 11, 12);
  EXPECT_THAT(std::string(caller.status.message()), HasSubstr("leaves out bytes 40 to 43"));
  ExpectIdle();
}

TEST_F(IncrementalExecutorTest, SharedInputIsCopiedAndComputedAsAWhole) {
  Caller caller;
  ExecutionRequest request = caller.Ask(SumOf(kCount));
  request.sources = {ReadOnes()};
  const auto execution = TryBegin(std::move(request));
  ASSERT_TRUE(execution.ok()) << execution.status();
  WaitUntil([&] { return caller.ready == 1; });
  EXPECT_EQ(ResultOf(**execution), kCount);
  executor_->Finish(*execution);
  ExpectIdle();
}

TEST_F(IncrementalExecutorTest, SaysThatThereIsNoMemoryForTheOutput) {
  // Room for the memory of the run, but not for its output as well.
  const OperatorDesc maxima = *Validate(ReduceDesc{.function = ReduceFunction::kMax,
                                                   .input = {DataType::kFloat32, {2, kCount / 2}},
                                                   .axes = {1}});
  const uint64_t bytes = IncrementalBytes(maxima);
  ASSERT_GT(bytes, 0u);
  Use({.threads = 1, .max_buffer_bytes = bytes + 4, .min_incremental_bytes = kBytes});
  Caller caller;
  ASSERT_NE(Begin(caller, maxima), nullptr);
  EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(caller.status.message(), absl::StrCat("A buffer of 8 bytes does not fit: ", bytes,
                                                  " of ", bytes + 4, " bytes are in use."));
  ExpectIdle();
}

}  // namespace
}  // namespace opmill
