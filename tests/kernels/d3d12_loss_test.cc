// The end of a Direct3D 12 device: lost under its runs, or closed.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "tests/kernels/d3d12_fixture.h"

namespace opmill {
namespace {

class D3D12LossTest : public D3D12DeviceTest {};

// The device is rebuilt only when the callback for the loss has returned.
TEST_F(D3D12LossTest, AnswersUnavailableUntilItIsRebuilt) {
  absl::Notification is_lost;
  absl::Notification may_rebuild;
  absl::Notification is_back;
  D3D12DeviceOptions options = TestOptions();
  options.on_availability = [&](const absl::Status& status) {
    if (status.ok()) return is_back.Notify();
    is_lost.Notify();
    may_rebuild.WaitForNotification();
  };
  Open(options);
  if (IsSkipped() || HasFailure()) return;
  InjectDeviceLossForTest(*device_);
  is_lost.WaitForNotification();
  const OperatorPlan plan = ShiftPlan(1000, 3);
  EXPECT_EQ(CompilePlanForTest(*device_, OperatorDesc(), plan).status().code(),
            absl::StatusCode::kUnavailable);
  for (const Residency residency : {Residency::kUpload, Residency::kReadback}) {
    EXPECT_EQ(device_->Allocate(16, residency).status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(device_->counters().resets, 0);
  may_rebuild.Notify();
  is_back.WaitForNotification();
  EXPECT_EQ(device_->counters().resets, 1);
  const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 12);
  ExpectOutput(plan, input, Shifted(input, 3));
  device_.reset();  // before the notifications that its callback uses
}

TEST_F(D3D12LossTest, SurvivesItsLoss) {
  const OperatorPlan plan = ShiftPlan(1000, 3);
  const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 8);
  const std::vector<uint8_t> expected = Shifted(input, 3);
  const auto old_operator = Compiled(plan);
  const Bindings old_bindings = Bound(plan, input);
  ASSERT_TRUE(device_->RunAndWait(old_operator, old_bindings).ok());

  InjectDeviceLossForTest(*device_);
  const absl::Status lost = device_->RunAndWait(old_operator, old_bindings).status();
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable) << lost;
  AwaitResets(1);
  ExpectOutput(plan, input, expected);
  EXPECT_EQ(device_->counters().resets, 1);

  EXPECT_EQ(device_->RunAndWait(old_operator, old_bindings).status().code(),
            absl::StatusCode::kUnavailable);
  const auto new_operator = Compiled(plan);
  EXPECT_EQ(device_->RunAndWait(new_operator, old_bindings).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(BytesOf(old_bindings.outputs[0]) == expected);
  EXPECT_TRUE(BytesOf(old_bindings.inputs[0]) == input);
}

TEST_F(D3D12LossTest, CallsBackForEveryRunAroundALoss) {
  constexpr int kThreads = 8;
  const OperatorPlan plan = ShiftPlan(5000, 6);
  const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 9);
  const std::vector<uint8_t> expected = Shifted(input, 6);
  std::atomic<bool> stop = false;
  std::atomic<int> right = 0;
  std::atomic<int> unavailable = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto output = RunPlan(*device_, plan, input);
        if (output.ok()) {
          ++(*output == expected ? right : wrong);
        } else {
          ++(output.status().code() == absl::StatusCode::kUnavailable ? unavailable : wrong);
        }
      }
    });
  }
  for (uint64_t loss = 1; loss <= 3; ++loss) {
    const int before = right;
    while (right < before + 20 && wrong == 0) std::this_thread::yield();
    InjectDeviceLossForTest(*device_);
    AwaitResets(loss);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  ExpectOutput(plan, input, expected);
}

TEST_F(D3D12LossTest, CallsBackForEveryRunWhenItCloses) {
  const OperatorPlan plan = ShiftPlan(40000, 8);
  const auto compiled = Compiled(plan);
  const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 11);
  Runs runs;
  for (int i = 0; i < 100; ++i) runs.Start(*device_, compiled, Bound(plan, input));
  device_.reset();
  const auto results = runs.Wait();
  EXPECT_EQ(results.size(), 100);
  for (const auto& result : results) {
    EXPECT_TRUE(result.ok() || absl::IsUnavailable(result.status())) << result.status();
  }
}

}  // namespace
}  // namespace opmill
