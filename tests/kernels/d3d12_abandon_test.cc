// How the Direct3D 12 device handles abandoned runs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "tests/kernels/d3d12_fixture.h"

namespace opmill {
namespace {

// A submission has at most 1024 dispatches.
constexpr uint32_t kManyPasses = 64 * 1024;

class D3D12AbandonTest : public D3D12DeviceTest {
 protected:
  struct Started {
    std::unique_ptr<Runs> runs = std::make_unique<Runs>();
    Bindings bindings;
    std::stop_source abandon;

    absl::Status Wait() const {
      const std::vector<absl::StatusOr<RunStatistics>> results = runs->Wait();
      EXPECT_EQ(results.size(), 1u) << "callbacks of one run";
      return results[0].status();
    }
    bool IsUntouched() const {
      const absl::Span<const std::byte> bytes = bindings.outputs[0].bytes();
      return std::all_of(bytes.begin(), bytes.end(),
                         [](std::byte byte) { return byte == std::byte{0x5A}; });
    }
  };

  Started Start(const std::shared_ptr<const CompiledProgram>& compiled, std::stop_source abandon) {
    Started started = {
        .bindings = Bound(PlanForTest(*compiled), Noise(PlanForTest(*compiled).input_bytes[0], 1)),
        .abandon = std::move(abandon)};
    const absl::Span<std::byte> output = started.bindings.outputs[0].bytes();
    std::fill(output.begin(), output.end(), std::byte{0x5A});
    started.runs->Start(*device_, compiled, started.bindings, started.abandon.get_token());
    return started;
  }
  Started Start(const std::shared_ptr<const CompiledProgram>& compiled) {
    return Start(compiled, std::stop_source());
  }

  void ExpectThatOthersWork() {
    const OperatorPlan plan = ShiftPlan(1000, 3);
    const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 2);
    ExpectOutput(plan, input, Shifted(input, 3));
  }
};

TEST_F(D3D12AbandonTest, DoesNotStartARunAbandonedBefore) {
  std::stop_source abandoned;
  abandoned.request_stop();
  const Started run = Start(Compiled(ShiftPlan(1000, 3)), abandoned);
  EXPECT_EQ(run.Wait(), absl::CancelledError("The run was abandoned."));
  EXPECT_TRUE(run.IsUntouched());
  EXPECT_EQ(device_->counters().submissions, 0u);
  EXPECT_EQ(device_->counters().runs, 0u);
  ExpectThatOthersWork();
}

// The only frame is in use: its run's end is not processed while the callback before it has not
// returned.
TEST_F(D3D12AbandonTest, DoesNotStartARunAbandonedInTheQueue) {
  D3D12DeviceOptions options = TestOptions();
  options.frames_in_flight = 1;
  Open(options);
  const auto compiled = Compiled(ShiftPlan(1000, 3));
  absl::Notification is_called;
  absl::Notification go_on;
  device_->Run(compiled, Bound(PlanForTest(*compiled), {}), {},
               [&](const absl::StatusOr<RunStatistics>& result) {
                 EXPECT_TRUE(result.ok()) << result.status();
                 is_called.Notify();
                 go_on.WaitForNotification();
               });
  is_called.WaitForNotification();
  const Started in_flight = Start(compiled);
  WaitForSubmissions(2);
  std::vector<Started> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(Start(compiled));
  for (int i = 0; i < 10; i += 2) waiting[i].abandon.request_stop();
  go_on.Notify();
  EXPECT_TRUE(in_flight.Wait().ok());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(waiting[i].Wait().code(),
              i % 2 == 0 ? absl::StatusCode::kCancelled : absl::StatusCode::kOk);
    EXPECT_EQ(waiting[i].IsUntouched(), i % 2 == 0);
  }
  EXPECT_EQ(device_->counters().runs, 7u);
}

TEST_F(D3D12AbandonTest, SubmitsNoFurtherPartOfAnAbandonedRun) {
  for (const bool is_unified : {true, false}) {
    SCOPED_TRACE(is_unified);
    D3D12DeviceOptions options = TestOptions();
    options.allow_unified_memory = is_unified;
    Open(options);
    const auto compiled = Compiled(ShiftPlan(64, kManyPasses));
    const Bindings kept = Bound(PlanForTest(*compiled), {});
    const uint64_t bytes_before = device_->counters().buffer_bytes_in_use;
    {
      Started run = Start(compiled);
      WaitForSubmissions(3);
      run.abandon.request_stop();
      const uint64_t submissions = device_->counters().submissions;
      EXPECT_EQ(run.Wait(), absl::CancelledError("The run was abandoned."));
      EXPECT_LE(device_->counters().submissions, submissions + 1);
      EXPECT_LT(device_->counters().dispatches, kManyPasses);
      EXPECT_EQ(device_->counters().runs, 0u);
    }
    const absl::Time patience = absl::Now() + absl::Seconds(60);
    while (device_->counters().buffer_bytes_in_use > bytes_before && absl::Now() < patience) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    // Less if the device has copied its constants by then.
    EXPECT_LE(device_->counters().buffer_bytes_in_use, bytes_before);
    ExpectThatOthersWork();
  }
}

TEST_F(D3D12AbandonTest, IgnoresALateStop) {
  const auto compiled = Compiled(ShiftPlan(1000, 3));
  Started run = Start(compiled);
  EXPECT_TRUE(run.Wait().ok());
  run.abandon.request_stop();
  EXPECT_TRUE(BytesOf(run.bindings.outputs[0]) == Shifted(BytesOf(run.bindings.inputs[0]), 3));
  ExpectThatOthersWork();
  EXPECT_EQ(device_->counters().runs, 2u);
}

// Each long run needs the scratch of the previous one.
TEST_F(D3D12AbandonTest, WaitsForMemoryThatWillBeReleased) {
  D3D12DeviceOptions options = TestOptions();
  options.max_host_bytes = uint64_t{96} << 20;
  Open(options);
  OperatorPlan plan = ShiftPlan(64, 20 * 1024);
  plan.scratch_bytes = uint64_t{12} << 20;  // which fits once beside small buffers and constants
  const auto compiled = Compiled(plan);
  std::vector<Started> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(Start(compiled));
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    WaitForSubmissions(device_->counters().submissions + 1);
    runs[i].abandon.request_stop();
    EXPECT_EQ(runs[i].Wait().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(runs.back().Wait(), absl::OkStatus());
  EXPECT_TRUE(BytesOf(runs.back().bindings.outputs[0]) ==
              Shifted(BytesOf(runs.back().bindings.inputs[0]), 20 * 1024));
}

TEST_F(D3D12AbandonTest, CallsBackOnceWheneverARunIsAbandoned) {
  const auto short_run = Compiled(ShiftPlan(500, 3));
  const auto long_run = Compiled(ShiftPlan(64, 3 * 1024));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t round = 0; round < 40; ++round) {
        const auto& compiled = (round + t) % 2 == 0 ? short_run : long_run;
        Started run = Start(compiled);
        const Started other = Start(short_run);
        absl::SleepFor(absl::Microseconds((t * 40 + round) * 7919 % 20000));
        run.abandon.request_stop();
        const absl::Status status = run.Wait();
        const uint32_t passes = static_cast<uint32_t>(PlanForTest(*compiled).passes.size());
        if (status.ok()) {
          EXPECT_TRUE(BytesOf(run.bindings.outputs[0]) ==
                      Shifted(BytesOf(run.bindings.inputs[0]), passes));
        } else {
          EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
        }
        EXPECT_TRUE(other.Wait().ok());
        EXPECT_TRUE(BytesOf(other.bindings.outputs[0]) ==
                    Shifted(BytesOf(other.bindings.inputs[0]), 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(D3D12AbandonTest, CallsBackForRunsAbandonedDuringItsShutdown) {
  const auto compiled = Compiled(ShiftPlan(64, kManyPasses));
  std::vector<Started> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(Start(compiled));
  WaitForSubmissions(1);
  std::thread abandoning([&] {
    for (Started& run : runs) run.abandon.request_stop();
  });
  device_.reset();
  abandoning.join();
  for (const Started& run : runs) EXPECT_FALSE(run.Wait().ok());
}

}  // namespace
}  // namespace opmill
