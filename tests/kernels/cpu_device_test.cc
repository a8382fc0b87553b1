#include "kernels/cpu/device/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/operating_system.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/plan/plan.h"
#include "kernels/reference/device/reference_device.h"
#include "tests/conformance/case_generator.h"
#include "tests/conformance/conformance_runner.h"
#include "tests/conformance/values.h"
#include "tests/support/programs.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

TensorDesc Float32(std::vector<uint32_t> sizes) {
  return {.data_type = DataType::kFloat32, .sizes = std::move(sizes)};
}

struct Prepared {
  std::shared_ptr<const CompiledProgram> compiled;
  Bindings bindings;
};

Prepared Prepare(Device& device, const OperatorDesc& desc) {
  Prepared prepared;
  const OperatorDesc validated = *Validate(desc);
  prepared.compiled = *device.Compile(validated);
  for (const TensorDesc& input : validated.inputs) {
    const uint64_t bytes = RequiredBytes(input);
    prepared.bindings.inputs.push_back(*device.Allocate(bytes, Residency::kUpload));
    std::memset(prepared.bindings.inputs.back().bytes().data(), 0, bytes);
  }
  for (const TensorDesc& output : OutputsOf(validated)) {
    prepared.bindings.outputs.push_back(
        *device.Allocate(RequiredBytes(output), Residency::kReadback));
  }
  return prepared;
}

// A sample of the conformance table, with every instruction set.
TEST(CpuInstructionSets, GiveTheReferencesResults) {
  const std::vector<std::string> names = InstructionSets();
  ASSERT_FALSE(names.empty());
  std::vector<ConformanceCase> cases;
  uint64_t turn = 0;
  for (const DataType type : kAllDataTypes) {
    for (const ConformanceCase& c : SystematicCases(type, PlanOptions())) {
      if (turn++ % 61 == 0) cases.push_back(c);
    }
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(UseInstructionSetForTest(name).ok());
    const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
    EXPECT_THAT(device->info().driver, HasSubstr(name));
    ConformanceRunner runner(*device);
    for (const ConformanceCase& c : cases) runner.Run(c);
    runner.Finish();
  }
  ASSERT_TRUE(UseInstructionSetForTest(names[0]).ok());
}

TEST(CpuInstructionSets, RefusesAnUnknownInstructionSet) {
  EXPECT_EQ(UseInstructionSetForTest("MMX").message(),
            "This processor has no instruction set MMX.");
}

TEST(CpuDevice, ResultsDoNotDependOnTheNumberOfThreads) {
  const TensorDesc input = Float32({517, 3, 1031});
  const std::vector<std::byte> bytes =
      MakeValues(ValuePattern::kRandomBits, DataType::kFloat32, RequiredBytes(input), 1031, 7);
  for (const ReduceFunction function : {ReduceFunction::kSum, ReduceFunction::kLogSumExp,
                                        ReduceFunction::kL2, ReduceFunction::kMultiply}) {
    for (const std::vector<uint32_t>& axes :
         {std::vector<uint32_t>{0}, {1}, {2}, {0, 2}, {0, 1, 2}}) {
      const ReduceDesc desc = {.function = function, .input = input, .axes = axes};
      const std::unique_ptr<Device> one = CreateCpuDevice({.threads = 1});
      const auto expected = RunOperator(*one, desc, bytes);
      ASSERT_TRUE(expected.ok()) << expected.status();
      for (const uint32_t threads : {2, 3, 7}) {
        const std::unique_ptr<Device> device =
            CreateCpuDevice({.threads = threads, .max_inline_bytes = 0});
        const auto got = RunOperator(*device, desc, bytes);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ(*got, *expected) << ToString(OperatorDesc(desc)) << ", " << threads;
      }
    }
  }
}

TEST(CpuDevice, AbandonsARunBetweenTasks) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1});
  // The first run occupies the thread; the second is stopped while it waits or works.
  const Prepared prepared = Prepare(*device, ReduceDesc{.function = ReduceFunction::kLogSumExp,
                                                        .input = Float32({64, 1 << 20}),
                                                        .axes = {1}});
  std::stop_source stop;
  absl::Notification first;
  absl::Notification second;
  absl::StatusOr<RunStatistics> stopped;
  device->Run(prepared.compiled, prepared.bindings, {},
              [&](const absl::StatusOr<RunStatistics>&) { first.Notify(); });
  device->Run(prepared.compiled, prepared.bindings, stop.get_token(),
              [&](absl::StatusOr<RunStatistics> result) {
                stopped = std::move(result);
                second.Notify();
              });
  const uint64_t tasks = device->counters().dispatches;
  stop.request_stop();
  second.WaitForNotification();
  EXPECT_EQ(stopped.status(), absl::CancelledError("The run was abandoned."));
  first.WaitForNotification();
  EXPECT_LT(device->counters().dispatches - tasks, 128u);  // two whole runs have as many
  EXPECT_EQ(device->counters().runs, 1u);
}

TEST(CpuDevice, ComputesSmallRunsWithinRun) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1});
  const Prepared prepared = Prepare(*device, ArgReduceDesc{.input = Float32({1024}), .axes = {0}});
  bool done = false;
  device->Run(prepared.compiled, prepared.bindings, {},
              [&](const absl::StatusOr<RunStatistics>& result) { done = result.ok(); });
  EXPECT_TRUE(done);
}

// Each callback begins the next run: nested calls would exhaust the stack.
TEST(CpuDevice, CallbacksThatRunDoNotNest) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  const Prepared prepared = Prepare(*device, ArgReduceDesc{.input = Float32({16}), .axes = {0}});
  constexpr int kRuns = 100'000;
  std::atomic<int> runs = 0;
  absl::Notification done;
  std::function<void(const absl::StatusOr<RunStatistics>&)> next =
      [&](const absl::StatusOr<RunStatistics>& result) {
        ASSERT_TRUE(result.ok()) << result.status();
        if (++runs == kRuns) {
          done.Notify();
        } else {
          device->Run(prepared.compiled, prepared.bindings, {}, next);
        }
      };
  device->Run(prepared.compiled, prepared.bindings, {}, next);
  done.WaitForNotification();
}

TEST(CpuDevice, ComputesShortRunsWithinRun) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  const auto is_within_run = [&](const auto& desc) {
    const Prepared prepared = Prepare(*device, desc);
    const std::thread::id caller = std::this_thread::get_id();
    std::thread::id thread;
    absl::Notification done;
    device->Run(prepared.compiled, prepared.bindings, {},
                [&](const absl::StatusOr<RunStatistics>& run) {
                  EXPECT_TRUE(run.ok()) << run.status();
                  thread = std::this_thread::get_id();
                  done.Notify();
                });
    done.WaitForNotification();
    return thread == caller;
  };
  // 512 KiB of several tasks.
  EXPECT_TRUE(is_within_run(ReduceDesc{.input = Float32({128, 960}), .axes = {1}}));
  EXPECT_FALSE(is_within_run(ReduceDesc{.input = Float32({128, 1088}), .axes = {1}}));
  // More if it is one task.
  EXPECT_TRUE(is_within_run(GemmDesc{.a = Float32({1, 900}), .b = Float32({900, 512})}));
  EXPECT_FALSE(is_within_run(GemmDesc{.a = Float32({1, 1088}), .b = Float32({1088, 512})}));
}

TEST(CpuDevice, SmallRunsDoNotWaitForLargeOnes) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1, .max_inline_bytes = 0});
  const Prepared large = Prepare(*device, ReduceDesc{.function = ReduceFunction::kLogSumExp,
                                                     .input = Float32({64, 1 << 20}),
                                                     .axes = {1}});
  const Prepared small = Prepare(*device, ArgReduceDesc{.input = Float32({16}), .axes = {0}});
  absl::Notification large_done;
  absl::Notification small_done;
  bool small_was_first = false;
  device->Run(large.compiled, large.bindings, {},
              [&](const absl::StatusOr<RunStatistics>&) { large_done.Notify(); });
  device->Run(small.compiled, small.bindings, {}, [&](const absl::StatusOr<RunStatistics>&) {
    small_was_first = !large_done.HasBeenNotified();
    small_done.Notify();
  });
  small_done.WaitForNotification();
  large_done.WaitForNotification();
  EXPECT_TRUE(small_was_first);
}

TEST(CpuDevice, EndsWaitingRunsWhenItCloses) {
  std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1, .max_inline_bytes = 0});
  const Prepared prepared =
      Prepare(*device, ReduceDesc{.input = Float32({64, 1 << 18}), .axes = {1}});
  std::atomic<int> answers = 0;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 20; ++i) {
    device->Run(prepared.compiled, prepared.bindings, {},
                [&](const absl::StatusOr<RunStatistics>& result) {
                  if (!result.ok()) {
                    EXPECT_EQ(result.status(), absl::UnavailableError("The device is closing."));
                    ++refused;
                  }
                  ++answers;
                });
  }
  device = nullptr;
  EXPECT_EQ(answers, 20);
  EXPECT_GT(refused, 0);
}

TEST(CpuDevice, RefusesBuffersThatAreMissingOrShort) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1});
  Prepared prepared = Prepare(*device, ReduceDesc{.input = Float32({100}), .axes = {0}});
  prepared.bindings.inputs = {*device->Allocate(396, Residency::kUpload)};
  EXPECT_EQ(device->RunAndWait(prepared.compiled, prepared.bindings).status().message(),
            "inputs[0] has 396 bytes, and needs 400.");
  prepared.bindings.inputs = {*device->Allocate(400, Residency::kUpload)};
  prepared.bindings.outputs.clear();
  EXPECT_EQ(device->RunAndWait(prepared.compiled, prepared.bindings).status().message(),
            "The program has 1 outputs, but 0 are given.");
}

TEST(CpuDevice, RefusesMemoryAndScratchBeyondItsLimits) {
  const std::unique_ptr<Device> device =
      CreateCpuDevice({.threads = 1, .max_buffer_bytes = 1000, .max_scratch_bytes = 1 << 20});
  const auto held = device->Allocate(900, Residency::kUpload);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(device->Allocate(101, Residency::kUpload).status().message(),
            "A buffer of 101 bytes does not fit: 900 of 1000 bytes are in use.");
  // Lists of chunks that are merged; the candidates of a task; those of columns side by side.
  for (const TopKDesc& desc :
       {TopKDesc{.input = Float32({1, 1 << 24}), .axis = 1, .k = 1 << 20},
        TopKDesc{.input = Float32({1, 1 << 18}), .axis = 1, .k = 1 << 18},
        TopKDesc{.input = Float32({1 << 18, 64}), .axis = 0, .k = 1 << 14}}) {
    EXPECT_THAT(std::string(device->Compile(*Validate(desc)).status().message()),
                HasSubstr("bytes of scratch, more than max_scratch_bytes (1048576)."));
  }
}

TEST(CpuDevice, KeepsLargeBuffersForReuse) {
  const std::unique_ptr<Device> device =
      CreateCpuDevice({.threads = 1, .max_idle_bytes = uint64_t{8} << 20});
  const auto allocate = [&](uint64_t bytes) {
    return *device->Allocate(bytes, Residency::kUpload);
  };
  std::byte* before = allocate(4 << 20)->bytes().data();
  EXPECT_EQ(device->counters().buffer_bytes_pooled, uint64_t{4} << 20);
  EXPECT_EQ(allocate(4 << 20)->bytes().data(), before);
  allocate(16 << 20);  // more than may be kept
  EXPECT_EQ(device->counters().buffer_bytes_pooled, uint64_t{4} << 20);
  device->ReleaseIdleMemory();
  EXPECT_EQ(device->counters().buffer_bytes_pooled, 0u);
  EXPECT_EQ(device->counters().buffer_bytes_in_use, 0u);
}

// Long sequences are split into chunks; the last one is shorter than k.
TEST(CpuDevice, MergesTheTopKOfLongSequences) {
  const std::unique_ptr<Device> device = CreateCpuDevice();
  for (const uint32_t k : {1000u, 700'000u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kInt64}) {
      const uint32_t size = (3 << 20) + 17;
      const TensorDesc input = {.data_type = type, .sizes = {size}};
      const std::vector<std::byte> bytes =
          MakeValues(ValuePattern::kTies, type, RequiredBytes(input), size, k);
      const TopKDesc desc = {.input = input, .axis = 0, .k = k};
      const auto got = RunOperator(*device, desc, bytes);
      ASSERT_TRUE(got.ok()) << got.status();
      const auto reference = CreateReferenceDevice();
      EXPECT_EQ(*got, *RunOperator(*reference, desc, bytes)) << ToString(type) << " " << k;
    }
  }
}

// In buffers that hold something else before.
void ExpectTheReferencesBytes(Device& device, const OperatorDesc& desc, ValuePattern pattern) {
  SCOPED_TRACE(absl::StrCat(ToString(desc), " ", ToString(pattern)));
  Prepared prepared = Prepare(device, desc);
  const TensorDesc& input = prepared.compiled->program().values[0].tensor;
  const std::vector<std::byte> bytes =
      MakeValues(pattern, input.data_type, RequiredBytes(input), input.sizes.back(), 5);
  std::memcpy(prepared.bindings.inputs[0].bytes().data(), bytes.data(), bytes.size());
  for (const auto& output : prepared.bindings.outputs) {
    std::memset(output.bytes().data(), 0xA5, output.bytes().size());
  }
  ASSERT_TRUE(device.RunAndWait(prepared.compiled, prepared.bindings).ok());
  const auto reference = CreateReferenceDevice();
  const auto expected = RunOperator(*reference, desc, bytes);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (size_t i = 0; i < expected->size(); ++i) {
    const std::byte* got = prepared.bindings.outputs[i].bytes().data();
    EXPECT_TRUE(std::equal((*expected)[i].begin(), (*expected)[i].end(), got)) << "output " << i;
  }
}

// So large that the zeros are streamed; rows and columns of any alignment.
TEST(CpuDevice, FillsTheOutputsOfLargeHardmaxes) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  for (const std::vector<uint32_t>& axes :
       {std::vector<uint32_t>{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 1, 2}}) {
    ExpectTheReferencesBytes(*device, HardmaxDesc{.input = Float32({9, 523, 1021}), .axes = axes},
                             ValuePattern::kNumbers);
  }
  ExpectTheReferencesBytes(*device, HardmaxDesc{.input = Float32({1'500'001, 3}), .axes = {1}},
                           ValuePattern::kTies);
  // Columns that are folded at once.
  ExpectTheReferencesBytes(*device, HardmaxDesc{.input = Float32({5, 3, 300'001}), .axes = {0, 1}},
                           ValuePattern::kTies);
  ExpectTheReferencesBytes(
      *device,
      HardmaxDesc{.input = {.data_type = DataType::kFloat16, .sizes = {3, 20, 150'001}},
                  .axes = {1}},
      ValuePattern::kRandomBits);
}

// Wider than a tile, and in several tasks.
TEST(CpuDevice, FoldsTallColumnsOfNarrowTypes) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  for (const DataType type : {DataType::kInt8, DataType::kFloat16}) {
    for (const AxisDirection direction : {AxisDirection::kIncreasing, AxisDirection::kDecreasing}) {
      ExpectTheReferencesBytes(*device,
                               ArgReduceDesc{.input = {.data_type = type, .sizes = {200, 16'411}},
                                             .axes = {0},
                                             .axis_direction = direction},
                               ValuePattern::kTies);
    }
  }
}

TEST(CpuDevice, FoldsShortRowsSideBySide) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  for (const uint32_t count : {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63}) {
    for (const DataType type :
         {DataType::kFloat32, DataType::kFloat16, DataType::kInt64, DataType::kUint8}) {
      const TensorDesc input = {.data_type = type, .sizes = {3, 709, count}};
      ExpectTheReferencesBytes(*device, ArgReduceDesc{.input = input, .axes = {2}},
                               ValuePattern::kSpecials);
      ExpectTheReferencesBytes(
          *device, ReduceDesc{.function = ReduceFunction::kMax, .input = input, .axes = {2}},
          ValuePattern::kRandomBits);
    }
  }
}

// Thresholds of both signs, among NaNs and ties; k = 1 is a reduction.
TEST(CpuDevice, FiltersTheTopKOfRowsAndColumns) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                              DataType::kInt32, DataType::kUint16, DataType::kInt8}) {
    for (const ValuePattern pattern :
         {ValuePattern::kNumbers, ValuePattern::kPositive, ValuePattern::kRandomBits,
          ValuePattern::kSpecials, ValuePattern::kRareNans, ValuePattern::kNegativeInfinity,
          ValuePattern::kTies, ValuePattern::kZeros, ValuePattern::kAscending}) {
      for (const AxisDirection direction :
           {AxisDirection::kIncreasing, AxisDirection::kDecreasing}) {
        for (const uint32_t k : {1, 2, 10, 256, 257}) {
          TopKDesc desc = {.input = {.data_type = type, .sizes = {1, 9001}},
                           .axis = 1,
                           .k = k,
                           .axis_direction = direction};
          ExpectTheReferencesBytes(*device, desc, pattern);
          if (k > 2) continue;
          desc.input.sizes = {600, 33};
          desc.axis = 0;
          ExpectTheReferencesBytes(*device, desc, pattern);
        }
      }
    }
  }
}

TEST(CpuHost, KnowsTheProcessor) {
  EXPECT_GE(UsableProcessors(), 1u);
  EXPECT_FALSE(ProcessorName().empty());
}

}  // namespace
}  // namespace opmill
