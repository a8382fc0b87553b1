// Runs whose steps a Direct3D 12 device measures.
#include <algorithm>
#include <memory>
#include <numeric>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/kernels/d3d12_fixture.h"
#include "tests/support/programs.h"

namespace opmill {
namespace {

using ::testing::Each;
using ::testing::Gt;

TensorDesc Float32(std::vector<uint32_t> sizes) {
  return {DataType::kFloat32, std::move(sizes), {}};
}

// Steps 0 and 2 read and write all rows; steps 1 and 3 have little to do.
Program LargeAndSmallSteps(uint32_t rows, uint32_t columns) {
  ProgramBuilder b;
  const TensorDesc tensor = Float32({rows, columns});
  const uint32_t input = b.Input(tensor);
  const uint32_t sums = b.Add(CumulativeSummationDesc{.input = tensor, .axis = 1}, {input})[0];
  const uint32_t small = b.Input(Float32({4}));
  const uint32_t first =
      b.Add(CumulativeSummationDesc{.input = b.tensor(small), .axis = 0}, {small})[0];
  const uint32_t totals =
      b.Add(ReduceDesc{.function = ReduceFunction::kSum, .input = tensor, .axes = {1}}, {sums})[0];
  const uint32_t second =
      b.Add(CumulativeSummationDesc{.input = b.tensor(first), .axis = 0}, {first})[0];
  return *Validate(b.Return(totals).Return(second).program());
}

Program ManySteps(uint32_t count) {
  ProgramBuilder b;
  const TensorDesc tensor = Float32({4});
  uint32_t value = b.Input(tensor);
  const uint32_t other = b.Input(tensor);
  for (uint32_t i = 0; i < count; ++i) {
    value = b.Add(ElementWiseAddDesc{.a = tensor, .b = tensor}, {value, other})[0];
  }
  return *Validate(b.Return(value).program());
}

std::vector<TensorBytes> Zeros(const Program& program) {
  std::vector<TensorBytes> inputs;
  for (const uint64_t bytes : RequiredBytes(program, ValueKind::kInput)) inputs.emplace_back(bytes);
  return inputs;
}

absl::Duration Sum(const std::vector<absl::Duration>& times) {
  return std::accumulate(times.begin(), times.end(), absl::ZeroDuration());
}

class D3D12ProfileTest : public D3D12DeviceTest {
 protected:
  void SetUp() override { Open(D3D12DeviceOptions()); }

  std::shared_ptr<const CompiledProgram> CompiledProgramOf(const Program& program) {
    auto compiled = device_->Compile(program);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? *compiled : nullptr;
  }
  Bindings BindingsOf(const Program& program) {
    auto bindings = BindProgram(*device_, program, Zeros(program));
    EXPECT_TRUE(bindings.ok()) << bindings.status();
    return bindings.ok() ? *std::move(bindings) : Bindings();
  }
  struct Measured {
    RunProfile profile;
    RunStatistics statistics;
  };
  Measured Profile(const Program& program, const std::shared_ptr<const CompiledProgram>& compiled) {
    Bindings bindings = BindingsOf(program);
    const auto profile = std::make_shared<RunProfile>();
    bindings.profile = profile;
    const auto statistics = device_->RunAndWait(compiled, std::move(bindings));
    EXPECT_TRUE(statistics.ok()) << statistics.status();
    return {*profile, statistics.ok() ? *statistics : RunStatistics()};
  }
};

// The device's own measurement of the lists is between the first and the last timestamp of a step.
void ExpectTimesOf(const RunStatistics& run, const std::vector<absl::Duration>& times) {
  constexpr absl::Duration kRounding = absl::Microseconds(1);
  EXPECT_GT(run.device, absl::ZeroDuration());
  EXPECT_GE(Sum(times) + kRounding, run.device);
  EXPECT_LE(Sum(times), run.executed);
}

class D3D12ProfileMemoryTest : public D3D12ProfileTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override { Open({.allow_unified_memory = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(, D3D12ProfileMemoryTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Unified" : "Copied"; });

TEST_P(D3D12ProfileMemoryTest, GivesEachStepItsTime) {
  const Program program = LargeAndSmallSteps(500, 1000);
  const auto compiled = CompiledProgramOf(program);
  ASSERT_TRUE(device_->RunAndWait(compiled, BindingsOf(program)).ok());
  std::vector<absl::Duration> shortest(4, absl::InfiniteDuration());
  for (int i = 0; i < 10; ++i) {
    const auto [profile, statistics] = Profile(program, compiled);
    ASSERT_EQ(profile.times.size(), 4u);
    EXPECT_EQ(profile.threads, 0u);
    EXPECT_THAT(profile.times, Each(Gt(absl::ZeroDuration())));
    ExpectTimesOf(statistics, profile.times);
    EXPECT_EQ(statistics.batch_size, 1u);
    for (size_t s = 0; s < 4; ++s) shortest[s] = std::min(shortest[s], profile.times[s]);
  }
  EXPECT_GT(shortest[0], shortest[1]);
  EXPECT_GT(shortest[0], shortest[3]);
}

// The first run is cut into short parts, because no kernel has been measured.
TEST_P(D3D12ProfileMemoryTest, AddsUpStepsThatAreCut) {
  const Program program = LargeAndSmallSteps(4000, 1000);
  const auto compiled = CompiledProgramOf(program);
  const uint64_t before = device_->counters().submissions;
  const auto [profile, statistics] = Profile(program, compiled);
  EXPECT_GT(device_->counters().submissions, before + 4);
  ASSERT_EQ(profile.times.size(), 4u);
  EXPECT_THAT(profile.times, Each(Gt(absl::ZeroDuration())));
  ExpectTimesOf(statistics, profile.times);
}

TEST_F(D3D12ProfileTest, MeasuresProgramsOfThousandsOfSteps) {
  constexpr uint32_t kSteps = 2500;  // more than two lists hold
  const Program program = ManySteps(kSteps);
  const auto compiled = CompiledProgramOf(program);
  const uint64_t timestamps_before = TimestampsForTest(*device_);
  const uint64_t submissions_before = device_->counters().submissions;
  const auto [profile, statistics] = Profile(program, compiled);
  const uint64_t submissions = device_->counters().submissions - submissions_before;
  EXPECT_GE(submissions, 3u);
  // Around the steps of each list, and around the list.
  EXPECT_EQ(TimestampsForTest(*device_) - timestamps_before, kSteps + submissions * (1 + 2));
  ASSERT_EQ(profile.times.size(), kSteps);
  EXPECT_THAT(profile.times, Each(Gt(absl::ZeroDuration())));
  ExpectTimesOf(statistics, profile.times);
}

TEST_F(D3D12ProfileTest, CostsOtherRunsNothing) {
  Open({.measure_device_time = false});
  const Program program = LargeAndSmallSteps(100, 70);
  const auto compiled = CompiledProgramOf(program);
  struct Recorded {
    uint64_t dispatches, barriers, timestamps;
    bool operator==(const Recorded&) const = default;
  };
  const auto recorded = [this] {
    return Recorded{device_->counters().dispatches, BarriersForTest(*device_),
                    TimestampsForTest(*device_)};
  };
  const auto recorded_by = [&](const std::shared_ptr<RunProfile>& profile) {
    Bindings bindings = BindingsOf(program);
    bindings.profile = profile;
    const Recorded before = recorded();
    EXPECT_TRUE(device_->RunAndWait(compiled, std::move(bindings)).ok());
    const Recorded after = recorded();
    return Recorded{after.dispatches - before.dispatches, after.barriers - before.barriers,
                    after.timestamps - before.timestamps};
  };
  recorded_by(nullptr);  // copies constants
  const Recorded plain = recorded_by(nullptr);
  EXPECT_EQ(plain.timestamps, 0u);
  const Recorded measured = recorded_by(std::make_shared<RunProfile>());
  EXPECT_EQ(measured, (Recorded{plain.dispatches, plain.barriers, 4 + 1}));
  EXPECT_EQ(recorded_by(nullptr), plain);
}

TEST_F(D3D12ProfileTest, MeasuresRunsBesideOthers) {
  const Program program = LargeAndSmallSteps(50, 100);
  const auto compiled = CompiledProgramOf(program);
  Runs plain;
  Runs measured;
  std::vector<std::shared_ptr<RunProfile>> profiles;
  for (int i = 0; i < 60; ++i) {
    Bindings bindings = BindingsOf(program);
    if (i % 3 == 1) {
      profiles.push_back(std::make_shared<RunProfile>());
      bindings.profile = profiles.back();
      measured.Start(*device_, compiled, std::move(bindings));
    } else {
      plain.Start(*device_, compiled, std::move(bindings));
    }
  }
  for (const auto& result : plain.Wait()) EXPECT_TRUE(result.ok()) << result.status();
  const auto results = measured.Wait();
  ASSERT_EQ(results.size(), profiles.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].ok()) << results[i].status();
    EXPECT_EQ(results[i]->batch_size, 1u);
    ASSERT_EQ(profiles[i]->times.size(), 4u);
    ExpectTimesOf(*results[i], profiles[i]->times);
  }
}

constexpr uint32_t kLongSteps = 8000;  // so many lists that the last ones have not begun

TEST_F(D3D12ProfileTest, EndsLikeOtherRunsWhenTheDeviceIsLost) {
  const Program program = ManySteps(kLongSteps);
  const auto old_compiled = CompiledProgramOf(program);
  Runs runs;
  for (int i = 0; i < 5; ++i) {
    Bindings bindings = BindingsOf(program);
    bindings.profile = std::make_shared<RunProfile>();
    runs.Start(*device_, old_compiled, std::move(bindings));
  }
  const uint64_t before = device_->counters().submissions;
  WaitForSubmissions(before + 1);
  InjectDeviceLossForTest(*device_);
  const auto results = runs.Wait();
  ASSERT_EQ(results.size(), 5u);
  for (const auto& result : results) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << result.status();
  }
  AwaitResets(1);
  EXPECT_EQ(Profile(program, CompiledProgramOf(program)).profile.times.size(), kLongSteps);
}

TEST_F(D3D12ProfileTest, EndsLikeOtherRunsWhenItIsAbandoned) {
  const Program program = ManySteps(kLongSteps);
  const auto compiled = CompiledProgramOf(program);
  Bindings bindings = BindingsOf(program);
  bindings.profile = std::make_shared<RunProfile>();
  std::stop_source abandon;
  Runs runs;
  const uint64_t before = device_->counters().submissions;
  runs.Start(*device_, compiled, std::move(bindings), abandon.get_token());
  WaitForSubmissions(before + 1);
  abandon.request_stop();
  const auto results = runs.Wait();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(absl::IsCancelled(results[0].status())) << results[0].status();
}

}  // namespace
}  // namespace opmill
