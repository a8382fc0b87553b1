#include "kernels/reference/device/reference_device.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

// A device and one small operator on it.
class ReferenceDeviceTest : public ::testing::Test {
 protected:
  void Create(const ReferenceDeviceOptions& options) { device_ = CreateReferenceDevice(options); }

  std::shared_ptr<const CompiledProgram> Compile(uint32_t size) {
    const TensorDesc input = {DataType::kUint32, {size}, {}};
    const OperatorDesc desc =
        Validate(ReduceDesc{ReduceFunction::kSum, input, std::nullopt, {0}}).value();
    return device_->Compile(desc).value();
  }

  Bindings Bind(uint32_t size, uint32_t value) {
    Bindings bindings;
    bindings.inputs = {device_->Allocate(4 * size, Residency::kUpload).value()};
    bindings.outputs = {device_->Allocate(4, Residency::kReadback).value()};
    const std::vector<std::byte> bytes =
        BytesOfBits({DataType::kUint32, {size}, {}}, std::vector<uint64_t>(size, value));
    std::copy(bytes.begin(), bytes.end(), bindings.inputs[0].bytes().begin());
    return bindings;
  }

  static uint32_t Result(const Bindings& bindings) {
    uint32_t result = 0;
    std::memcpy(&result, bindings.outputs[0].bytes().data(), sizeof(result));
    return result;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(ReferenceDeviceTest, RunsForManyThreadsAtOnce) {
  Create({.threads = 4});
  const auto compiled = Compile(10);
  std::atomic<int> right = 0;
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (uint32_t run = 0; run < 50; ++run) {
        const Bindings bindings = Bind(10, caller * 100 + run);
        const auto statistics = device_->RunAndWait(compiled, bindings);
        if (statistics.ok() && Result(bindings) == 10 * (caller * 100 + run)) ++right;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 400);
  EXPECT_EQ(device_->counters().runs, 400u);
  // A run holds its buffers until its callback has returned, slightly after the caller wakes.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (device_->counters().buffer_bytes_in_use != 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(device_->counters().buffer_bytes_in_use, 0u);
}

TEST_F(ReferenceDeviceTest, RefusesBuffersBeyondItsLimit) {
  Create({.threads = 1, .max_buffer_bytes = 100});
  auto buffer = device_->Allocate(60, Residency::kUpload);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ((*buffer)->bytes().size(), 60u);
  const absl::Status refusal = device_->Allocate(41, Residency::kUpload).status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refusal.message(), "A buffer of 41 bytes does not fit: 60 of 100 bytes are in use.");
  EXPECT_TRUE(device_->Allocate(40, Residency::kUpload).ok());
  *buffer = nullptr;
  EXPECT_TRUE(device_->Allocate(100, Residency::kUpload).ok());
  // No overflow.
  EXPECT_EQ(device_->Allocate(~uint64_t{0}, Residency::kUpload).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ReferenceDeviceTest, AnswersEveryRunEvenWhenItsQueueIsFullOrItCloses) {
  std::vector<absl::Status> answers;
  // The destructor's first step is not observable: repeat with longer waits until it happened in
  // time.
  for (int wait_ms = 10; wait_ms < 10000; wait_ms *= 2) {
    Create({.threads = 1, .max_queued = 1});
    const auto compiled = Compile(1);
    const Bindings bindings = Bind(1, 7);
    absl::Notification started;
    absl::Notification go_on;
    answers.assign(3, absl::UnknownError("none"));
    // The only worker stands still in the first callback.
    device_->Run(compiled, bindings, {}, [&](absl::StatusOr<RunStatistics> result) {
      answers[0] = result.status();
      started.Notify();
      go_on.WaitForNotification();
    });
    started.WaitForNotification();
    for (const size_t i : {1, 2}) {
      device_->Run(compiled, bindings, {},
                   [&, i](absl::StatusOr<RunStatistics> result) { answers[i] = result.status(); });
    }
    std::thread closer([&] { device_ = nullptr; });
    absl::SleepFor(absl::Milliseconds(wait_ms));
    go_on.Notify();
    closer.join();
    EXPECT_EQ(answers[0], absl::OkStatus());
    EXPECT_EQ(answers[2].message(), "The device's queue of 1 runs is full.");
    EXPECT_EQ(answers[2].code(), absl::StatusCode::kResourceExhausted);
    if (!answers[1].ok()) break;
  }
  EXPECT_EQ(answers[1].message(), "The device is closing.");
  EXPECT_EQ(answers[1].code(), absl::StatusCode::kUnavailable);
}

TEST_F(ReferenceDeviceTest, DoesNotStartARunAbandonedInTheQueue) {
  Create({.threads = 1});
  const auto compiled = Compile(1);
  absl::Notification started;
  absl::Notification go_on;
  // The only worker stands still in the first callback.
  device_->Run(compiled, Bind(1, 7), {}, [&](const absl::StatusOr<RunStatistics>&) {
    started.Notify();
    go_on.WaitForNotification();
  });
  started.WaitForNotification();
  const Bindings bindings = Bind(1, 7);
  const uint32_t untouched = 0x5A5A5A5A;
  std::memcpy(bindings.outputs[0].bytes().data(), &untouched, sizeof(untouched));
  std::stop_source abandon;
  std::vector<absl::Status> answers;
  device_->Run(
      compiled, bindings, abandon.get_token(),
      [&](const absl::StatusOr<RunStatistics>& result) { answers.push_back(result.status()); });
  abandon.request_stop();
  go_on.Notify();
  const Bindings next = Bind(1, 9);
  EXPECT_TRUE(device_->RunAndWait(compiled, next).ok());
  EXPECT_EQ(Result(next), 9u);
  EXPECT_EQ(answers, std::vector<absl::Status>{absl::CancelledError("The run was abandoned.")});
  EXPECT_EQ(Result(bindings), untouched);
  EXPECT_EQ(device_->counters().runs, 2u);
}

// All elements are the same one, and so many that an operator would take minutes.
TEST_F(ReferenceDeviceTest, EndsWhatIsAbandonedUnderWay) {
  const TensorDesc input = {DataType::kFloat32, {65535, 65535}, {0, 0}};
  const OperatorDesc kOperators[] = {
      *Validate(ReduceDesc{ReduceFunction::kLogSumExp, input, std::nullopt, {0, 1}}),
      *Validate(ReduceDesc{ReduceFunction::kMax, input, std::nullopt, {1}}),
      *Validate(ReduceDesc{ReduceFunction::kArgMin, input, std::nullopt, {0}}),
      *Validate(ArgReduceDesc{.extreme = Extreme::kMax, .input = input, .axes = {1}}),
      *Validate(TopKDesc{.input = input, .axis = 1, .k = 100}),
      *Validate(HardmaxDesc{.input = {DataType::kFloat16, {1024, 65535}, {0, 0}}, .axes = {0, 1}}),
  };
  Create({.threads = 1});
  for (const OperatorDesc& desc : kOperators) {
    SCOPED_TRACE(ToString(desc));
    Bindings bindings = {.inputs = {device_->Allocate(4, Residency::kUpload).value()}};
    for (const TensorDesc& output : OutputsOf(desc)) {
      bindings.outputs.push_back(
          device_->Allocate(RequiredBytes(output), Residency::kReadback).value());
    }
    std::stop_source abandon;
    absl::Status answer;
    absl::Notification answered;
    device_->Run(device_->Compile(desc).value(), bindings, abandon.get_token(),
                 [&](const absl::StatusOr<RunStatistics>& result) {
                   answer = result.status();
                   answered.Notify();
                 });
    EXPECT_FALSE(answered.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
    abandon.request_stop();
    EXPECT_TRUE(answered.WaitForNotificationWithTimeout(absl::Seconds(10)));
    answered.WaitForNotification();
    EXPECT_EQ(answer, absl::CancelledError("The run was abandoned."));
  }
}

TEST_F(ReferenceDeviceTest, RefusesARunWithoutBuffers) {
  Create({});
  Bindings bindings = Bind(1, 7);
  bindings.outputs[0] = {};
  const std::pair<Bindings, std::string> kCases[] = {
      {{}, "The program has 1 inputs, but 0 are given."},
      {bindings, "outputs[0] has 0 bytes, and needs 4."}};
  for (const auto& [incomplete, sentence] : kCases) {
    const absl::Status status = device_->RunAndWait(Compile(1), incomplete).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), sentence);
  }
  EXPECT_EQ(device_->info().kind, DeviceKind::kReference);
}

}  // namespace
}  // namespace opmill
