// Handwritten plans and shaders for the tests of the Direct3D 12 device, independent of the
// operators.
#ifndef OPMILL_TESTS_KERNELS_D3D12_FIXTURE_H_
#define OPMILL_TESTS_KERNELS_D3D12_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/plan/plan.h"
#include "tests/support/test_devices.h"

namespace opmill {

// Options with the shaders of these tests: "test", and "broken", which does not compile.
D3D12DeviceOptions TestOptions();

KernelPermutation TestKernel(std::string entry, uint32_t element_bytes);

BufferView View(BufferRole role, ViewFormat format, uint64_t offset_bytes, uint64_t count);

// `source` must consist of whole vectors.
Dispatch MakeDispatch(uint32_t kernel, BufferView source, BufferView target);

OperatorPlan CopyPlan(ViewFormat format, uint64_t count);

// Each pass shifts all vectors left by one and adds one to their words. Passes alternate between
// two halves of the scratch.
OperatorPlan ShiftPlan(uint64_t vectors, uint32_t passes);
std::vector<uint8_t> Shifted(const std::vector<uint8_t>& bytes, uint32_t passes);

std::vector<uint8_t> Noise(uint64_t size_bytes, uint32_t seed);

std::vector<uint8_t> BytesOf(const Range& range);

absl::StatusOr<Bindings> Bind(Device& device, const OperatorPlan& plan,
                              const std::vector<uint8_t>& input);

// Compiles, binds and runs the plan, and returns the bytes of the first output.
absl::StatusOr<std::vector<uint8_t>> RunPlan(Device& device, const OperatorPlan& plan,
                                             const std::vector<uint8_t>& input);

// Starts many runs, and collects their results.
class Runs {
 public:
  void Start(Device& device, const std::shared_ptr<const CompiledProgram>& compiled,
             Bindings bindings, std::stop_token abandoned = {}) {
    {
      absl::MutexLock lock(&mutex_);
      ++under_way_;
    }
    device.Run(compiled, std::move(bindings), std::move(abandoned),
               [this](absl::StatusOr<RunStatistics> result) {
                 absl::MutexLock lock(&mutex_);
                 --under_way_;
                 results_.push_back(std::move(result));
               });
  }
  std::vector<absl::StatusOr<RunStatistics>> Wait() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* under_way) { return *under_way == 0; }, &under_way_));
    return results_;
  }

 private:
  absl::Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<absl::StatusOr<RunStatistics>> results_ ABSL_GUARDED_BY(mutex_);
};

class D3D12DeviceTest : public ::testing::Test {
 protected:
  // Replaces the open device. Skips or fails the test if there is none.
  void Open(const D3D12DeviceOptions& options) {
    auto device = CreateD3D12Device(options);
    if (device.ok()) {
      device_ = *std::move(device);
      return;
    }
    if (RequiresDevices()) FAIL() << device.status();
    GTEST_SKIP() << device.status();
  }
  void SetUp() override { Open(TestOptions()); }

  std::shared_ptr<const CompiledProgram> Compiled(const OperatorPlan& plan) {
    auto compiled = CompilePlanForTest(*device_, OperatorDesc(), plan);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? *compiled : nullptr;
  }
  Bindings Bound(const OperatorPlan& plan, const std::vector<uint8_t>& input) {
    auto bindings = Bind(*device_, plan, input);
    EXPECT_TRUE(bindings.ok()) << bindings.status();
    return bindings.ok() ? *std::move(bindings) : Bindings();
  }
  void ExpectOutput(const OperatorPlan& plan, const std::vector<uint8_t>& input,
                    const std::vector<uint8_t>& expected) {
    const auto output = RunPlan(*device_, plan, input);
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_TRUE(*output == expected);
  }
  void WaitForSubmissions(uint64_t count) {
    Await([this, count] { return device_->counters().submissions >= count; });
  }
  void AwaitResets(uint64_t count) {
    Await([this, count] { return device_->counters().resets >= count; });
  }

  std::unique_ptr<Device> device_;

 private:
  template <typename Condition>
  static void Await(const Condition& condition) {
    const absl::Time patience = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), patience);
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
};

}  // namespace opmill

#endif  // OPMILL_TESTS_KERNELS_D3D12_FIXTURE_H_
