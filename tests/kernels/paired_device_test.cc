#include "kernels/engine/paired_device.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/server/gated_device.h"
#include "tests/support/programs.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

constexpr uint32_t kRows = 64;
constexpr uint32_t kColumns = 1024;
constexpr uint64_t kSmallBytes = 4096;

OperatorDesc MaxOfRows(uint32_t rows) {
  return *Validate(ReduceDesc{.function = ReduceFunction::kMax,
                              .input = {.data_type = DataType::kFloat32, .sizes = {rows, kColumns}},
                              .axes = {1}});
}

std::vector<float> Values(uint32_t rows) {
  std::vector<float> values;
  for (uint32_t i = 0; i < rows * kColumns; ++i) {
    values.push_back(static_cast<float>(i * 2654435761u % 100003));
  }
  return values;
}

std::vector<float> MaximaOfRows(uint32_t rows) {
  const std::vector<float> values = Values(rows);
  std::vector<float> maxima;
  for (auto row = values.begin(); row != values.end(); row += kColumns) {
    maxima.push_back(*std::max_element(row, row + kColumns));
  }
  return maxima;
}

std::vector<float> Floats(const Range& range) {
  std::vector<float> floats(range.bytes().size() / sizeof(float));
  std::memcpy(floats.data(), range.bytes().data(), floats.size() * sizeof(float));
  return floats;
}

Bindings Bind(Device& device, uint32_t rows) {
  const std::vector<float> values = Values(rows);
  Bindings bindings;
  bindings.inputs = {*device.Allocate(values.size() * sizeof(float), Residency::kUpload)};
  std::memcpy(bindings.inputs[0].bytes().data(), values.data(), values.size() * sizeof(float));
  bindings.outputs = {*device.Allocate(rows * sizeof(float), Residency::kReadback)};
  return bindings;
}

// A first device whose runs end when the test says, beside the processor.
class PairedDeviceTest : public ::testing::Test {
 protected:
  explicit PairedDeviceTest(uint64_t small_bytes = 0) {
    auto first = std::make_unique<GatedDevice>();
    first_ = first.get();
    pair_ = CreatePairedDevice(std::move(first), CreateCpuDevice(),
                               {.small_bytes = small_bytes, .first_is_available = available_});
  }

  // The run's end is what Wait answers.
  void Start(const std::shared_ptr<const CompiledProgram>& compiled, const Bindings& bindings) {
    pair_->Run(compiled, bindings, stop_.get_token(), [this](absl::StatusOr<RunStatistics> result) {
      const std::lock_guard lock(mutex_);
      result_ = std::move(result);
      ended_.notify_all();
    });
  }
  absl::Status Wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return result_.has_value(); });
    return std::exchange(result_, std::nullopt)->status();
  }

  const std::shared_ptr<std::atomic<bool>> available_ = std::make_shared<std::atomic<bool>>(true);
  GatedDevice* first_ = nullptr;
  std::unique_ptr<Device> pair_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<absl::StatusOr<RunStatistics>> result_;
};

class PairedDeviceWithSmallWorkTest : public PairedDeviceTest {
 protected:
  PairedDeviceWithSmallWorkTest() : PairedDeviceTest(kSmallBytes) {}
};

TEST_F(PairedDeviceTest, ComputesOnTheFirst) {
  const Bindings bindings = Bind(*pair_, kRows);
  Start(*pair_->Compile(MaxOfRows(kRows)), bindings);
  first_->Complete(std::byte{1});
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(bindings.outputs[0].bytes()[0], std::byte{1});
  EXPECT_EQ(pair_->counters().standby_runs, 0);
  EXPECT_EQ(pair_->counters().small_runs, 0);
}

TEST_F(PairedDeviceTest, HasNoIncrementalRunsAndDoesNotKnowHowTheFirstRounds) {
  const OperatorDesc maxima = MaxOfRows(kRows);
  const ProgramCost of_standby = (*CreateCpuDevice()->Compile(maxima))->cost();
  const ProgramCost cost = (*pair_->Compile(maxima))->cost();
  EXPECT_GT(of_standby.incremental_bytes, 0u);
  EXPECT_EQ(cost.incremental_bytes, 0u);
  EXPECT_NE(of_standby.rounding, 0u);
  EXPECT_EQ(cost.rounding, 0u);
  EXPECT_EQ(pair_->info().min_incremental_bytes, UINT64_MAX);
}

TEST_F(PairedDeviceTest, RunsProgramsOfSeveralNodesOnTheStandby) {
  ProgramBuilder builder;
  const TensorDesc input = {DataType::kFloat32, {kRows, kColumns}, {}};
  const uint32_t maxima = builder.Add(MaxOfRows(kRows), {builder.Input(input)})[0];
  const ReduceDesc all = {
      .function = ReduceFunction::kMax, .input = builder.tensor(maxima), .axes = {0}};
  builder.Return(builder.Add(all, {maxima})[0]);
  available_->store(false);
  Bindings bindings = Bind(*pair_, kRows);
  bindings.outputs = {*pair_->Allocate(sizeof(float), Residency::kReadback)};
  Start(*pair_->Compile(builder.program()), bindings);
  EXPECT_EQ(Wait(), absl::OkStatus());
  const std::vector<float> values = Values(kRows);
  EXPECT_EQ(Floats(bindings.outputs[0])[0], *std::max_element(values.begin(), values.end()));
}

TEST_F(PairedDeviceTest, RunsAgainWhatTheLossEnded) {
  const Bindings bindings = Bind(*pair_, kRows);
  Start(*pair_->Compile(MaxOfRows(kRows)), bindings);
  const GatedDevice::PendingRun lost = first_->Take();
  lost.done(absl::UnavailableError("lost"));
  EXPECT_EQ(Wait(), absl::OkStatus());
  // The lost device may be late.
  for (std::byte& byte : lost.bindings.outputs[0].bytes()) byte = std::byte{0x55};
  EXPECT_EQ(Floats(bindings.outputs[0]), MaximaOfRows(kRows));
  EXPECT_EQ(pair_->counters().standby_runs, 1);
}

TEST_F(PairedDeviceTest, DoesNotRunAgainWhatIsAbandoned) {
  Start(*pair_->Compile(MaxOfRows(kRows)), Bind(*pair_, kRows));
  stop_.request_stop();
  first_->Fail(absl::UnavailableError("lost"));
  EXPECT_EQ(Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(PairedDeviceTest, PassesOnOtherErrors) {
  Start(*pair_->Compile(MaxOfRows(kRows)), Bind(*pair_, kRows));
  first_->Fail(absl::ResourceExhaustedError("no memory"));
  EXPECT_EQ(Wait().code(), absl::StatusCode::kResourceExhausted);
  first_->FailCompilations(absl::InternalError("a bug"));
  EXPECT_EQ(pair_->Compile(MaxOfRows(kRows)).status().code(), absl::StatusCode::kInternal);
}

TEST_F(PairedDeviceTest, LeavesTheFirstAloneWhileItIsLost) {
  available_->store(false);
  EXPECT_TRUE(pair_->counters().on_standby);
  const auto compiled = *pair_->Compile(MaxOfRows(kRows));
  const Bindings bindings = Bind(*pair_, kRows);
  Start(compiled, bindings);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(Floats(bindings.outputs[0]), MaximaOfRows(kRows));
  EXPECT_EQ(first_->compiled(), 0);
  EXPECT_EQ(pair_->counters().standby_runs, 1);
  EXPECT_EQ(pair_->counters().no_memory_runs, 0);
}

TEST_F(PairedDeviceTest, KeepsRunsWithMemoryOfALossOnTheStandby) {
  const auto compiled = *pair_->Compile(MaxOfRows(kRows));
  available_->store(false);
  const Bindings bindings = Bind(*pair_, kRows);
  available_->store(true);
  Start(compiled, bindings);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(Floats(bindings.outputs[0]), MaximaOfRows(kRows));
}

TEST_F(PairedDeviceTest, GoesOnWhereTheFirstIsLostBeforeAnybodySaysSo) {
  first_->FailCompilations(absl::UnavailableError("lost"));
  const Bindings bindings = Bind(*pair_, kRows);
  Start(*pair_->Compile(MaxOfRows(kRows)), bindings);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(Floats(bindings.outputs[0]), MaximaOfRows(kRows));
}

TEST_F(PairedDeviceWithSmallWorkTest, SendsSmallRunsToTheStandby) {
  const OperatorDesc desc =
      *Validate(ReduceDesc{.function = ReduceFunction::kMax,
                           .input = {.data_type = DataType::kFloat32, .sizes = {1, 512}},
                           .axes = {1}});
  const auto compiled = *pair_->Compile(desc);
  ASSERT_LE(compiled->cost().run_bytes, kSmallBytes);
  Bindings bindings;
  bindings.inputs = {*pair_->Allocate(2048, Residency::kUpload)};
  for (std::byte& byte : bindings.inputs[0].bytes()) byte = std::byte{0};
  bindings.outputs = {*pair_->Allocate(4, Residency::kReadback)};
  Start(compiled, bindings);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(Floats(bindings.outputs[0]), std::vector<float>{0});
  EXPECT_EQ(first_->compiled(), 0);
  EXPECT_EQ(pair_->counters().small_runs, 1);
  EXPECT_EQ(pair_->counters().standby_runs, 0);
}

TEST_F(PairedDeviceWithSmallWorkTest, CopiesSmallBuffersOfLargeRuns) {
  const Bindings bindings = Bind(*pair_, kRows);  // the output is small
  Start(*pair_->Compile(MaxOfRows(kRows)), bindings);
  first_->Complete(std::byte{1});
  EXPECT_EQ(Wait(), absl::OkStatus());
  for (const std::byte byte : bindings.outputs[0].bytes()) ASSERT_EQ(byte, std::byte{1});
}

TEST_F(PairedDeviceWithSmallWorkTest, ComputesOnTheStandbyIfTheFirstHasNoMemory) {
  const Bindings bindings = Bind(*pair_, kRows);
  const auto compiled = *pair_->Compile(MaxOfRows(kRows));
  first_->RefuseBuffers(Residency::kReadback);
  Start(compiled, bindings);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(Floats(bindings.outputs[0]), MaximaOfRows(kRows));
  EXPECT_EQ(pair_->counters().no_memory_runs, 1);
  EXPECT_EQ(pair_->counters().standby_runs, 0);
}

TEST_F(PairedDeviceWithSmallWorkTest, RunsAgainWithSmallBuffers) {
  const Bindings bindings = Bind(*pair_, kRows);
  Start(*pair_->Compile(MaxOfRows(kRows)), bindings);
  first_->Fail(absl::UnavailableError("lost"));
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(Floats(bindings.outputs[0]), MaximaOfRows(kRows));
}

class PairedDeviceBufferTest : public PairedDeviceWithSmallWorkTest {
 protected:
  // Reads a small part of a large device buffer.
  Bindings SmallPartOf(const std::shared_ptr<Buffer>& buffer) {
    return {.inputs = {{buffer, 4096, 2048}},
            .outputs = {*pair_->Allocate(4, Residency::kReadback)}};
  }
  std::shared_ptr<Buffer> DeviceBuffer(uint64_t size_bytes) {
    return *pair_->Allocate(size_bytes, Residency::kDevice);
  }

  const OperatorDesc small_ =
      *Validate(ReduceDesc{.function = ReduceFunction::kMax,
                           .input = {.data_type = DataType::kFloat32, .sizes = {1, 512}},
                           .axes = {1}});
};

TEST_F(PairedDeviceBufferTest, KeepsItsRunsOnTheFirst) {
  const auto buffer = DeviceBuffer(2 * kSmallBytes);
  const auto compiled = *pair_->Compile(small_);
  for (const uint8_t run : {1, 2}) {
    const Bindings bindings = SmallPartOf(buffer);
    Start(compiled, bindings);
    const GatedDevice::PendingRun on_first = first_->Take();
    EXPECT_EQ(on_first.bindings.inputs[0].offset_bytes, 4096u);
    EXPECT_EQ(on_first.bindings.inputs[0].buffer->size_bytes(), 2 * kSmallBytes);
    std::memset(on_first.bindings.outputs[0].bytes().data(), run, 4);
    on_first.done(RunStatistics());
    EXPECT_EQ(Wait(), absl::OkStatus());
    EXPECT_EQ(bindings.outputs[0].bytes()[3], std::byte{run}) << "the small output is copied";
    EXPECT_EQ(first_->compiled(), 1) << "the small program too, once";
  }
  EXPECT_EQ(pair_->counters().small_runs, 0u);
}

TEST_F(PairedDeviceBufferTest, EndsWithTheFirst) {
  const auto buffer = DeviceBuffer(2 * kSmallBytes);
  const auto compiled = *pair_->Compile(small_);
  Start(compiled, SmallPartOf(buffer));
  first_->Fail(absl::UnavailableError("lost under the run"));
  EXPECT_EQ(Wait(), absl::UnavailableError("lost under the run"));
  available_->store(false);
  Start(compiled, SmallPartOf(buffer));
  EXPECT_EQ(Wait(),
            absl::UnavailableError("inputs[0] was in the memory of a device that is lost."));
  Bindings writes = Bind(*pair_, kRows);
  writes.outputs = {buffer};
  Start(*pair_->Compile(MaxOfRows(kRows)), writes);
  EXPECT_EQ(Wait(),
            absl::UnavailableError("outputs[0] was in the memory of a device that is lost."));
  EXPECT_EQ(pair_->counters().standby_runs, 0u);
}

TEST_F(PairedDeviceBufferTest, OfALossStaysWithTheStandby) {
  available_->store(false);
  const auto buffer = DeviceBuffer(2 * kSmallBytes);
  available_->store(true);
  std::memset(buffer->bytes().data(), 0, buffer->size_bytes());
  const auto compiled = *pair_->Compile(small_);
  Bindings bindings = SmallPartOf(buffer);
  Start(compiled, bindings);
  EXPECT_EQ(Wait(), absl::OkStatus());
  EXPECT_EQ(Floats(bindings.outputs[0]), std::vector<float>{0});
  EXPECT_EQ(first_->pending_runs(), 0u);
  // The first device gets a copy of the small part.
  std::memset(bindings.inputs[0].bytes().data(), 0x11, 2048);
  bindings.outputs = {DeviceBuffer(2 * kSmallBytes)};
  Start(compiled, bindings);
  const GatedDevice::PendingRun on_first = first_->Take();
  EXPECT_EQ(on_first.bindings.inputs[0].bytes().size(), 2048u);
  EXPECT_EQ(on_first.bindings.inputs[0].bytes()[2047], std::byte{0x11});
  on_first.done(RunStatistics());
  EXPECT_EQ(Wait(), absl::OkStatus());
}

TEST_F(PairedDeviceBufferTest, RefusesLargeBuffersOfBothDevices) {
  available_->store(false);
  const auto of_standby = DeviceBuffer(kRows * kColumns * sizeof(float));
  available_->store(true);
  Bindings bindings = {.inputs = {of_standby}, .outputs = {DeviceBuffer(2 * kSmallBytes)}};
  Start(*pair_->Compile(MaxOfRows(kRows)), bindings);
  EXPECT_EQ(Wait(), absl::UnavailableError("The first device is, or was, lost."));
}

// On a real adapter with its own memory, whose buffers the standby cannot read.
TEST(PairOfSoftwareAndProcessorTest, ChainsThroughDeviceBuffersOfEitherDevice) {
  const auto available = std::make_shared<std::atomic<bool>>(true);
  auto first = CreateD3D12Device(
      {.choice = AdapterChoice::kSoftware,
       .allow_unified_memory = false,
       .on_availability = [available](const absl::Status& status) { *available = status.ok(); }});
  if (!first.ok() && !RequiresDevices()) GTEST_SKIP() << first.status();
  ASSERT_TRUE(first.ok()) << first.status();
  Device& adapter = **first;
  const std::unique_ptr<Device> pair = CreatePairedDevice(
      *std::move(first), CreateCpuDevice(), {.small_bytes = 1024, .first_is_available = available});
  const TensorDesc maxima = {DataType::kFloat32, {kRows, 1}, {}};
  const OperatorDesc last =
      *Validate(ReduceDesc{.function = ReduceFunction::kMax, .input = maxima, .axes = {0}});
  const std::vector<float> expected = MaximaOfRows(kRows);
  for (const uint64_t middle_bytes : {uint64_t{256}, uint64_t{4096}}) {
    SCOPED_TRACE(middle_bytes);
    Bindings writes = Bind(*pair, kRows);
    const auto middle = *pair->Allocate(middle_bytes, Residency::kDevice);
    writes.outputs = {{middle, 0, kRows * sizeof(float)}};
    ASSERT_EQ(pair->RunAndWait(*pair->Compile(MaxOfRows(kRows)), writes).status(),
              absl::OkStatus());
    const Bindings reads = {.inputs = writes.outputs,
                            .outputs = {*pair->Allocate(4, Residency::kReadback)}};
    const auto compiled = *pair->Compile(last);
    ASSERT_EQ(pair->RunAndWait(compiled, reads).status(), absl::OkStatus());
    EXPECT_EQ(Floats(reads.outputs[0])[0], *std::max_element(expected.begin(), expected.end()));
    if (middle_bytes <= 1024) continue;
    const uint64_t losses = adapter.counters().resets;
    InjectDeviceLossForTest(adapter);
    while (adapter.counters().resets == losses || !*available) std::this_thread::yield();
    EXPECT_TRUE(absl::IsUnavailable(pair->RunAndWait(compiled, reads).status()));
    EXPECT_EQ(pair->RunAndWait(*pair->Compile(last), reads).status(),
              absl::UnavailableError("inputs[0] was in the memory of a device that is lost."));
  }
}

// The real devices: no run fails, whenever the adapter is lost.
TEST(PairOfSoftwareAndProcessorTest, AnswersEveryRunAroundLosses) {
  constexpr int kThreads = 4;
  constexpr uint64_t kLosses = 5;
  const auto available = std::make_shared<std::atomic<bool>>(true);
  auto first = CreateD3D12Device(
      {.choice = AdapterChoice::kSoftware,
       .on_availability = [available](const absl::Status& status) { *available = status.ok(); }});
  if (!first.ok() && !RequiresDevices()) GTEST_SKIP() << first.status();
  ASSERT_TRUE(first.ok()) << first.status();
  Device& adapter = **first;
  const std::unique_ptr<Device> pair =
      CreatePairedDevice(*std::move(first), CreateCpuDevice(), {.first_is_available = available});
  const std::vector<float> expected = MaximaOfRows(kRows);
  const OperatorDesc desc = MaxOfRows(kRows);
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> right = 0;
  std::atomic<uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto compiled = pair->Compile(desc);
        const Bindings bindings = Bind(*pair, kRows);
        const bool good = compiled.ok() && pair->RunAndWait(*compiled, bindings).ok() &&
                          Floats(bindings.outputs[0]) == expected;
        ++(good ? right : wrong);
      }
    });
  }
  const auto await = [&](const auto& condition) {
    while (!condition() && wrong == 0) absl::SleepFor(absl::Milliseconds(1));
  };
  const auto on_standby = [&] { return pair->counters().standby_runs > 0; };
  for (uint64_t loss = 1; (loss <= kLosses || !on_standby()) && wrong == 0; ++loss) {
    const uint64_t before = right;
    await([&] { return right >= before + 20; });
    InjectDeviceLossForTest(adapter);
    await([&] { return adapter.counters().resets >= loss && *available; });
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace opmill
