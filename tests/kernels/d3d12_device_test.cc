// How the Direct3D 12 device executes plans: memory, passes, batches.
#include "kernels/d3d12/d3d12_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/kernels/d3d12_fixture.h"
#include "tests/support/quantities.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// With kernels on host memory, and with copies.
class D3D12MemoryTest : public D3D12DeviceTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    D3D12DeviceOptions options = TestOptions();
    options.allow_unified_memory = GetParam();
    Open(options);
    if (IsSkipped() || HasFatalFailure()) return;
    if (GetParam() && !device_->info().unified_memory) GTEST_SKIP() << "No unified memory.";
    EXPECT_EQ(device_->info().unified_memory, GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(, D3D12MemoryTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Unified" : "Copied"; });

TEST_P(D3D12MemoryTest, WritesThroughEveryFormat) {
  for (const ViewFormat format : {ViewFormat::kUint8, ViewFormat::kUint16, ViewFormat::kUint32,
                                  ViewFormat::kUint32x2, ViewFormat::kVector}) {
    for (const uint64_t count : {1, 3, 15, 16, 17, 63, 64, 65, 1023, 70001}) {
      SCOPED_TRACE(absl::StrCat(ViewElementBytes(format), " bytes x ", count));
      const OperatorPlan plan = CopyPlan(format, count);
      const std::vector<uint8_t> input = Noise(plan.input_bytes[0], static_cast<uint32_t>(count));
      ExpectOutput(plan, input, input);
    }
  }
}

TEST_P(D3D12MemoryTest, WaitsOnceBetweenPassesThatDependOnEachOther) {
  // One after the copy of the input, and one before that of the output.
  const uint64_t of_copies = GetParam() ? 0 : 2;
  const auto barriers_of = [&](const OperatorPlan& plan) {
    const uint64_t before = BarriersForTest(*device_);
    EXPECT_TRUE(RunPlan(*device_, plan, Noise(plan.input_bytes[0], 1)).ok());
    return BarriersForTest(*device_) - before - of_copies;
  };
  EXPECT_EQ(barriers_of(ShiftPlan(100, 1)), 0u);
  EXPECT_EQ(barriers_of(ShiftPlan(100, 2)), 1u);
  // The pass between reads and writes the same scratch. If it is in the same list as the others,
  // its barrier takes two calls.
  EXPECT_THAT(barriers_of(ShiftPlan(100, 3)), AnyOf(2u, 3u));
}

TEST_P(D3D12MemoryTest, FillsZeroExactlyTheirRange) {
  constexpr uint64_t kSize = 5 * kMebibyte + 20;
  const Fill fills[] = {{BufferRole::Output(), 0, 4},
                        {BufferRole::Output(), 12, 20},
                        {BufferRole::Output(), 1000, 2 * kMebibyte + 4},
                        {BufferRole::Output(), 3 * kMebibyte, kMebibyte},
                        {BufferRole::Output(), kSize - 8, 8}};
  OperatorPlan plan = CopyPlan(ViewFormat::kUint32, kSize / 4);
  plan.passes.emplace_back().fills = {std::begin(fills), std::end(fills)};
  const std::vector<uint8_t> input = Noise(kSize, 1);
  std::vector<uint8_t> expected = input;
  for (const Fill& fill : fills) {
    std::fill_n(expected.begin() + fill.offset_bytes, fill.size_bytes, uint8_t{0});
  }
  ExpectOutput(plan, input, expected);
}

TEST_P(D3D12MemoryTest, OverwritesAnEarlierFill) {
  OperatorPlan plan = CopyPlan(ViewFormat::kVector, 1000);
  plan.output_bytes = {32000};
  plan.passes.insert(plan.passes.begin(), Pass());
  plan.passes[0].fills = {{BufferRole::Output(), 0, 32000}};
  const std::vector<uint8_t> input = Noise(16000, 2);
  std::vector<uint8_t> expected = input;
  expected.resize(32000, 0);
  for (int i = 0; i < 3; ++i) ExpectOutput(plan, input, expected);
}

TEST_P(D3D12MemoryTest, EachPassSeesTheWritesOfThePreviousOne) {
  for (const uint32_t rounds : {1u, 2u, 3u, 64u}) {
    SCOPED_TRACE(rounds);
    const OperatorPlan plan = ShiftPlan(40000, rounds);
    const std::vector<uint8_t> input = Noise(plan.input_bytes[0], rounds);
    ExpectOutput(plan, input, Shifted(input, rounds));
  }
}

// Groups end in another order each time.
TEST_P(D3D12MemoryTest, JoinsSplitsAlikeWhicheverGroupIsLast) {
  D3D12DeviceOptions options = TestOptions();
  options.allow_unified_memory = GetParam();
  options.shader_sources = D3D12DeviceOptions().shader_sources;
  Open(options);
  const TensorDesc input = {.data_type = DataType::kFloat32, .sizes = {3, 70001}};
  std::mt19937 random(1);
  std::vector<float> values(size_t{3} * 70001);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  for (const uint32_t axis : {0u, 1u}) {
    const auto desc =
        Validate(ReduceDesc{.function = ReduceFunction::kSum, .input = input, .axes = {axis}});
    ASSERT_TRUE(desc.ok()) << desc.status();
    const auto compiled = device_->Compile(*desc);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const OperatorPlan& plan = PlanForTest(**compiled);
    std::vector<uint8_t> bytes(plan.input_bytes[0]);
    std::memcpy(bytes.data(), values.data(), values.size() * sizeof(float));
    std::vector<uint8_t> first;
    for (int round = 0; round < 50; ++round) {
      Runs runs;
      std::vector<Range> outputs;
      for (int i = 0; i < 20; ++i) {
        Bindings bindings = Bound(plan, bytes);
        outputs.push_back(bindings.outputs[0]);
        runs.Start(*device_, *compiled, std::move(bindings));
      }
      for (const auto& result : runs.Wait()) ASSERT_TRUE(result.ok()) << result.status();
      if (first.empty()) first = BytesOf(outputs[0]);
      for (const auto& output : outputs) ASSERT_TRUE(BytesOf(output) == first);
    }
  }
}

TEST_P(D3D12MemoryTest, SplitsPlansOfThousandsOfDispatches) {
  constexpr uint64_t kVectors = 9001;
  OperatorPlan plan;
  plan.kernels = {TestKernel("Copy", 16), TestKernel("ShiftAndIncrement", 16)};
  plan.passes.resize(2);
  for (uint64_t i = 0; i < kVectors; ++i) {
    plan.passes[0].dispatches.push_back(
        MakeDispatch(0, View(BufferRole::Input(), ViewFormat::kVector, i * 16, 1),
                     View(BufferRole::Scratch(), ViewFormat::kVector, i * 16, 1)));
  }
  plan.passes[1].dispatches.push_back(
      MakeDispatch(1, View(BufferRole::Scratch(), ViewFormat::kVector, 0, kVectors),
                   View(BufferRole::Output(), ViewFormat::kVector, 0, kVectors)));
  plan.input_bytes = {kVectors * 16};
  plan.scratch_bytes = kVectors * 16;
  plan.output_bytes = {kVectors * 16};
  const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 3);
  const uint64_t submissions_before = device_->counters().submissions;
  ExpectOutput(plan, input, Shifted(input, 1));
  EXPECT_GT(device_->counters().submissions - submissions_before, 1);
}

TEST_P(D3D12MemoryTest, AnswersManyThreadsAtOnce) {
  constexpr int kThreads = 32;
  constexpr int kRounds = 50;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const uint32_t passes = 1 + t % 5;
      const OperatorPlan plan = ShiftPlan(100 + 37 * t, passes);
      for (int round = 0; round < kRounds; ++round) {
        const auto input = Noise(plan.input_bytes[0], static_cast<uint32_t>(t * kRounds + round));
        const auto output = RunPlan(*device_, plan, input);
        if (!output.ok() || *output != Shifted(input, passes)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const DeviceCounters counters = device_->counters();
  EXPECT_EQ(counters.runs, kThreads * kRounds);
  EXPECT_LT(counters.submissions, counters.runs);
}

TEST_F(D3D12DeviceTest, SubmitsReadyRunsTogether) {
  const OperatorPlan plan = ShiftPlan(4000, 8);
  const auto compiled = Compiled(plan);
  const std::vector<uint8_t> input = Noise(plan.input_bytes[0], 4);
  std::vector<Range> outputs;
  Runs runs;
  for (int i = 0; i < 100; ++i) {
    Bindings bindings = Bound(plan, input);
    outputs.push_back(bindings.outputs[0]);
    runs.Start(*device_, compiled, std::move(bindings));
  }
  uint32_t largest_batch = 0;
  for (const absl::StatusOr<RunStatistics>& result : runs.Wait()) {
    ASSERT_TRUE(result.ok()) << result.status();
    largest_batch = std::max(largest_batch, result->batch_size);
    EXPECT_GT(result->executed, absl::ZeroDuration());
    EXPECT_LE(result->device, result->executed);
  }
  const std::vector<uint8_t> expected = Shifted(input, 8);
  for (const auto& output : outputs) EXPECT_TRUE(BytesOf(output) == expected);
  EXPECT_GT(largest_batch, 1);
  EXPECT_LE(device_->counters().submissions, 50);
}

// Two operators alternate; every fifth run is refused.
TEST_P(D3D12MemoryTest, ServesRunsOfOneOperatorByOneDispatch) {
  constexpr uint32_t kRuns = 200;
  const OperatorPlan plans[] = {ShiftPlan(100, 3), CopyPlan(ViewFormat::kUint8, 1601)};
  const std::shared_ptr<const CompiledProgram> compiled[] = {Compiled(plans[0]),
                                                             Compiled(plans[1])};
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<Bindings> bindings;
  for (uint32_t i = 0; i < kRuns; ++i) {
    inputs.push_back(Noise(plans[i % 2].input_bytes[0], i));
    bindings.push_back(Bound(plans[i % 2], inputs[i]));
    if (i % 5 == 0) bindings[i].inputs[0] = {};
  }
  const uint64_t dispatches_before = device_->counters().dispatches;
  Runs runs;
  for (uint32_t i = 0; i < kRuns; ++i) runs.Start(*device_, compiled[i % 2], bindings[i]);
  int refused = 0;
  for (const absl::StatusOr<RunStatistics>& result : runs.Wait()) refused += !result.ok();
  EXPECT_EQ(refused, kRuns / 5);
  for (uint32_t i = 0; i < kRuns; ++i) {
    if (i % 5 == 0) continue;
    const std::vector<uint8_t> expected = i % 2 == 0 ? Shifted(inputs[i], 3) : inputs[i];
    EXPECT_TRUE(BytesOf(bindings[i].outputs[0]) == expected) << i;
  }
  // Without sharing, 3 and 1 per run.
  EXPECT_LT(device_->counters().dispatches - dispatches_before, kRuns);
}

TEST_F(D3D12DeviceTest, CompilesAKernelOnceForConcurrentCallers) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 16; ++t) {
    threads.emplace_back([this, t] { Compiled(CopyPlan(ViewFormat::kUint16, 10 + t)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device_->counters().pipelines_created, 1);
  EXPECT_EQ(device_->counters().shaders_compiled, 1);
}

// A copy with a different kernel for each number.
OperatorPlan NumberedCopy(uint32_t number) {
  OperatorPlan plan = CopyPlan(ViewFormat::kUint32, 100 + number);
  plan.kernels[0].macros.push_back({"NUMBER", number});
  return plan;
}

// Kernels of runs are released after their callbacks have returned.
uint64_t LiveKernelsAtRest(Device& device, uint64_t awaited) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  do {
    device.ReleaseIdleKernels();
  } while (device.counters().live_kernels > awaited && absl::Now() < end);
  return device.counters().live_kernels;
}

TEST_F(D3D12DeviceTest, ReleasesTheLeastRecentlyUsedKernels) {
  ScratchDirectory cache;
  D3D12DeviceOptions options = TestOptions();
  options.max_live_kernels = 4;
  options.shader_cache_directory = cache.utf8();
  Open(options);
  const OperatorPlan held_plan = NumberedCopy(99);
  const auto held = Compiled(held_plan);
  const auto run = [this](uint32_t number) {
    const OperatorPlan plan = NumberedCopy(number);
    const std::vector<uint8_t> input = Noise(plan.input_bytes[0], number);
    ExpectOutput(plan, input, input);
  };
  for (int round = 0; round < 3; ++round) {
    for (uint32_t number = 0; number < 20; ++number) {
      run(number);
      EXPECT_LE(device_->counters().live_kernels, 5u);  // the newest is held until it has run
    }
  }
  EXPECT_EQ(device_->counters().pipelines_created, 61u);
  EXPECT_EQ(device_->counters().shaders_compiled, 21u);
  // The last three, and the referenced one, are live.
  for (const uint32_t number : {17u, 18u, 19u}) run(number);
  EXPECT_EQ(device_->counters().pipelines_created, 61u);
  run(16);
  EXPECT_EQ(device_->counters().pipelines_created, 62u);

  EXPECT_EQ(LiveKernelsAtRest(*device_, 1), 1u);
  const Bindings bindings = Bound(held_plan, Noise(held_plan.input_bytes[0], 99));
  EXPECT_TRUE(device_->RunAndWait(held, bindings).ok());
  EXPECT_TRUE(BytesOf(bindings.outputs[0]) == BytesOf(bindings.inputs[0]));
  EXPECT_EQ(device_->counters().pipelines_created, 62u);
}

// Runs are in progress with kernels that have no other references, while other kernels are created
// and released.
TEST_F(D3D12DeviceTest, KeepsTheKernelsOfRunsUnderWay) {
  D3D12DeviceOptions options = TestOptions();
  options.max_live_kernels = 1;
  Open(options);
  constexpr uint32_t kThreads = 4;
  std::atomic<int> wrong = 0;
  // The first round may never leave a kernel idle. All are by its end, so that the second one
  // creates them again.
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, &wrong] {
        Runs runs;
        std::vector<Bindings> bindings;
        for (uint32_t i = 0; i < 60; ++i) {
          const OperatorPlan plan = NumberedCopy((t * 7 + i) % 11);
          auto compiled = CompilePlanForTest(*device_, OperatorDesc(), plan);
          auto bound = Bind(*device_, plan, Noise(plan.input_bytes[0], i));
          if (!compiled.ok() || !bound.ok()) {
            ++wrong;
            continue;
          }
          bindings.push_back(*bound);
          runs.Start(*device_, *std::move(compiled), *std::move(bound));
          if (i % 10 == 0) device_->ReleaseIdleKernels();
        }
        for (const auto& result : runs.Wait()) wrong += !result.ok();
        for (const Bindings& each : bindings) {
          wrong += BytesOf(each.outputs[0]) != BytesOf(each.inputs[0]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(LiveKernelsAtRest(*device_, 0), 0u);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(device_->counters().pipelines_created, 11u);
}

TEST_F(D3D12DeviceTest, ReportsTheCompilersMessage) {
  OperatorPlan plan = CopyPlan(ViewFormat::kUint32, 4);
  plan.kernels[0] = {.shader = "broken", .entry = "Main", .macros = {}};
  const auto compiled = CompilePlanForTest(*device_, OperatorDesc(), plan);
  EXPECT_EQ(compiled.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(compiled.status().message()),
              AnyOf(HasSubstr("broken.hlsl:"), HasSubstr("broken.hlsl(")));
}

TEST_F(D3D12DeviceTest, RefusesPlansBeyondBuffersOrDirect3DLimits) {
  const struct {
    const char* what;
    void (*spoil)(OperatorPlan&);
  } kCases[] = {
      {"read", [](OperatorPlan& p) { p.passes[0].dispatches[0].reads[0].element_count = 8; }},
      {"write", [](OperatorPlan& p) { p.passes[0].dispatches[0].writes[0].element_count = 113; }},
      {"offset", [](OperatorPlan& p) { p.passes[0].dispatches[0].writes[0].offset_bytes = 8; }},
      {"role",
       [](OperatorPlan& p) { p.passes[0].dispatches[0].writes[0].role = BufferRole::Output(1); }},
      {"input",
       [](OperatorPlan& p) { p.passes[0].dispatches[0].writes[0].role = BufferRole::Input(); }},
      {"fill",
       [](OperatorPlan& p) {
         p.passes[0].fills = {{BufferRole::Output(), 100, 16}};
       }},
      {"groups", [](OperatorPlan& p) { p.passes[0].dispatches[0].groups[0] = 65536; }},
      {"no groups", [](OperatorPlan& p) { p.passes[0].dispatches[0].groups[1] = 0; }},
      {"kernel", [](OperatorPlan& p) { p.passes[0].dispatches[0].kernel = 1; }},
  };
  for (const auto& [what, spoil] : kCases) {
    OperatorPlan plan = CopyPlan(ViewFormat::kUint8, 99);  // 112 bytes with the last vector
    spoil(plan);
    EXPECT_EQ(CompilePlanForTest(*device_, OperatorDesc(), plan).status().code(),
              absl::StatusCode::kInternal)
        << what;
  }
}

TEST_F(D3D12DeviceTest, RefusesBuffersThatDoNotFit) {
  const OperatorPlan plan = CopyPlan(ViewFormat::kUint8, 100);
  const auto compiled = Compiled(plan);
  const Bindings good = Bound(plan, Noise(100, 5));
  const Bindings small = Bound(CopyPlan(ViewFormat::kUint8, 99), Noise(99, 5));
  const struct {
    const char* what;
    Bindings bindings;
  } kCases[] = {
      {"no input", {{}, good.outputs}},
      {"null input", {{Range()}, good.outputs}},
      {"two inputs", {{good.inputs[0], good.inputs[0]}, good.outputs}},
      {"no output", {good.inputs, {}}},
      {"null output", {good.inputs, {Range()}}},
      {"two outputs", {good.inputs, {good.outputs[0], good.outputs[0]}}},
      {"small input", {small.inputs, good.outputs}},
      {"small output", {good.inputs, small.outputs}},
      {"directions", {good.outputs, good.inputs}},
  };
  for (const auto& [what, bindings] : kCases) {
    EXPECT_EQ(device_->RunAndWait(compiled, bindings).status().code(),
              absl::StatusCode::kInvalidArgument)
        << what;
  }
  EXPECT_EQ(device_->RunAndWait(nullptr, good).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(device_->RunAndWait(compiled, good).ok());
}

TEST_F(D3D12DeviceTest, LetsCallbacksRunAgain) {
  const OperatorPlan plan = ShiftPlan(100, 2);
  const auto compiled = Compiled(plan);
  const Bindings bindings = Bound(plan, Noise(plan.input_bytes[0], 10));
  absl::Notification done;
  int rounds = 0;
  Device::RunCallback again = [&](const absl::StatusOr<RunStatistics>& result) {
    EXPECT_TRUE(result.ok()) << result.status();
    if (++rounds == 10) return done.Notify();
    device_->Run(compiled, bindings, {}, again);
  };
  device_->Run(compiled, bindings, {}, again);
  done.WaitForNotification();
  device_.reset();  // the last callback has returned
  EXPECT_EQ(rounds, 10);
}

TEST(ChooseAdapters, PutsHardwareFirstAndHonorsTheChoice) {
  const std::vector<AdapterInfo> adapters = {
      {0, "llvmpipe (LLVM 15)", DeviceKind::kSoftware, "", 0},
      {1, "Radeon 610M", DeviceKind::kHardware, "", 0},
      {2, "GeForce 4090", DeviceKind::kHardware, "", 0}};
  const struct {
    AdapterChoice choice;
    const char* wanted;
    std::vector<uint32_t> expected;
  } kCases[] = {
      {AdapterChoice::kAuto, "", {1, 2, 0}},  {AdapterChoice::kHardware, "", {1, 2}},
      {AdapterChoice::kSoftware, "", {0}},    {AdapterChoice::kAuto, "2", {2}},
      {AdapterChoice::kAuto, "geforce", {2}}, {AdapterChoice::kAuto, "LLVM", {0}},
      {AdapterChoice::kAuto, "e", {1, 2, 0}},
  };
  for (const auto& [choice, wanted, expected] : kCases) {
    const auto chosen = ChooseAdapters(adapters, choice, wanted);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    std::vector<uint32_t> indices;
    for (const AdapterInfo& adapter : *chosen) indices.push_back(adapter.index);
    EXPECT_EQ(indices, expected) << wanted;
  }
  EXPECT_EQ(ChooseAdapters(adapters, AdapterChoice::kHardware, "llvmpipe").status().message(),
            "This machine has no hardware adapter called 'llvmpipe'; it has: 0 llvmpipe (LLVM 15) "
            "(software), 1 Radeon 610M (hardware), 2 GeForce 4090 (hardware).");
  EXPECT_EQ(ChooseAdapters({}, AdapterChoice::kAuto, "").status().message(),
            "This machine has no adapter; it has: none.");
}

}  // namespace
}  // namespace opmill
