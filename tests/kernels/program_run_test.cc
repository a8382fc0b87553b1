// Programs of several operators give the bytes that their operators give one after the other.
#include <algorithm>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#if OPMILL_CPU_DEVICE
#include "kernels/cpu/device/cpu_device.h"
#endif
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/program_plan.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/reference/device/reference_device.h"
#include "tests/kernels/random_program.h"
#include "tests/support/programs.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

TensorDesc Float32(std::vector<uint32_t> sizes, std::vector<uint32_t> strides = {}) {
  return {DataType::kFloat32, std::move(sizes), std::move(strides)};
}

OperatorDesc Reduce(const TensorDesc& input, std::vector<uint32_t> axes,
                    ReduceFunction function = ReduceFunction::kSum) {
  return ReduceDesc{.function = function, .input = input, .axes = std::move(axes)};
}
OperatorDesc Sums(const TensorDesc& input, uint32_t axis = 0) {
  return CumulativeSummationDesc{.input = input, .axis = axis};
}
OperatorDesc Add(const TensorDesc& a, const TensorDesc& b) {
  return ElementWiseAddDesc{.a = a, .b = b};
}

// A name, and a program.
using NamedProgram = std::pair<std::string, Program>;

NamedProgram Named(std::string name, const ProgramBuilder& builder) {
  return {std::move(name), builder.program()};
}

NamedProgram HardmaxReduceTopK() {
  ProgramBuilder b;
  const uint32_t peaks = b.Add(HardmaxDesc{.input = Float32({40, 130}), .axes = {1}},
                               {b.Input(Float32({40, 130}))})[0];
  const uint32_t counts = b.Add(Reduce(b.tensor(peaks), {0}), {peaks})[0];
  const auto best = b.Add(TopKDesc{.input = b.tensor(counts), .axis = 1, .k = 7}, {counts});
  return Named("hardmax, reduce, top_k", b.Return(best[0]).Return(best[1]));
}

NamedProgram Diamond() {
  ProgramBuilder b;
  const TensorDesc tensor = Float32({33, 65});
  const uint32_t top = b.Add(Sums(tensor, 1), {b.Input(tensor)})[0];
  const uint32_t left = b.Add(HardmaxDesc{.input = tensor, .axes = {0}}, {top})[0];
  const uint32_t right = b.Add(Sums(tensor, 0), {top})[0];
  return Named("diamond", b.Return(b.Add(Add(tensor, tensor), {left, right})[0]));
}

NamedProgram ValueUsedTwiceByOneNode() {
  ProgramBuilder b;
  const TensorDesc tensor = Float32({1000});
  const uint32_t sums = b.Add(Sums(tensor), {b.Input(tensor)})[0];
  return Named("a value plus itself", b.Return(b.Add(Add(tensor, tensor), {sums, sums})[0]));
}

NamedProgram OutputReadByLaterNodes() {
  ProgramBuilder b;
  const TensorDesc tensor = Float32({17, 257});
  const uint32_t sums = b.Add(Sums(tensor, 1), {b.Input(tensor)})[0];
  const uint32_t extremes = b.Add(Reduce(tensor, {1}, ReduceFunction::kMax), {sums})[0];
  const uint32_t all = b.Add(Reduce(b.tensor(extremes), {0}), {extremes})[0];
  return Named("outputs that later nodes read", b.Return(sums).Return(extremes).Return(all));
}

NamedProgram UnreadIntermediates() {
  ProgramBuilder b;
  const auto best = b.Add(TopKDesc{.input = Float32({20, 300}), .axis = 1, .k = 50},
                          {b.Input(Float32({20, 300}))});
  const uint32_t sums = b.Add(Reduce(b.tensor(best[1]), {0}), {best[1]})[0];
  return Named("values of top_k that are not read", b.Return(sums));
}

NamedProgram InputsInAnotherOrder() {
  ProgramBuilder b;
  const uint32_t first = b.Input(Float32({5, 9}));
  b.Input(Float32({5, 9}));
  const uint32_t third = b.Input(Float32({5, 9}));
  const uint32_t sum = b.Add(Add(b.tensor(third), b.tensor(first)), {third, first})[0];
  return Named("inputs in another order, one unread",
               b.Return(b.Add(Reduce(b.tensor(sum), {0}), {sum})[0]).Return(sum));
}

NamedProgram Strided() {
  ProgramBuilder b;
  const TensorDesc input = Float32({12, 7, 30}, {400, 50, 1});
  const TensorDesc transposed = Float32({12, 7, 30}, {1, 12, 84});
  const TensorDesc gaps = Float32({12, 1, 30}, {100, 3, 3});
  const uint32_t a = b.Input(input);
  const uint32_t broadcast = b.Input(Float32({12, 7, 30}, {0, 30, 1}));
  const uint32_t sum =
      b.Add(ElementWiseAddDesc{.a = input, .b = b.tensor(broadcast), .output = transposed},
            {a, broadcast})[0];
  const uint32_t peaks =
      b.Add(HardmaxDesc{.input = transposed, .output = input, .axes = {2}}, {sum})[0];
  const uint32_t totals = b.Add(
      ReduceDesc{.function = ReduceFunction::kSum, .input = input, .output = gaps, .axes = {1}},
      {peaks})[0];
  const uint32_t result =
      b.Add(CumulativeSummationDesc{.input = gaps, .output = gaps, .axis = 2}, {totals})[0];
  return Named("strides, gaps, broadcast", b.Return(result).Return(peaks));
}

NamedProgram NarrowTypes() {
  ProgramBuilder b;
  const TensorDesc bytes = {DataType::kUint8, {9, 37}, {}};
  const uint32_t input = b.Input(bytes);
  const auto best = b.Add(TopKDesc{.input = bytes, .axis = 0, .k = 3}, {input});
  const uint32_t most = b.Add(Reduce(b.tensor(best[0]), {1}, ReduceFunction::kMax), {best[0]})[0];
  const uint32_t where = b.Add(ArgReduceDesc{.input = bytes, .axes = {1}}, {input})[0];
  return Named("UINT8, sizes that fill no word", b.Return(most).Return(where).Return(best[1]));
}

NamedProgram LongSequences() {
  ProgramBuilder b;
  const TensorDesc tensor = Float32({2, 70001});
  const uint32_t input = b.Input(tensor);
  const uint32_t sums = b.Add(Sums(tensor, 1), {input})[0];
  const uint32_t total = b.Add(Reduce(tensor, {1}, ReduceFunction::kL2), {sums})[0];
  const auto best = b.Add(TopKDesc{.input = tensor, .axis = 1, .k = 100}, {sums});
  const uint32_t least =
      b.Add(ArgReduceDesc{.extreme = Extreme::kMin, .input = b.tensor(best[0]), .axes = {1}},
            {best[0]})[0];
  return Named("sequences in several parts, with scratch",
               b.Return(total).Return(least).Return(best[1]));
}

NamedProgram ManySorts() {
  ProgramBuilder b;
  const TensorDesc tensor = Float32({2, 2500});
  uint32_t value = b.Input(tensor);
  for (int i = 0; i < 2; ++i) {
    const auto sorted = b.Add(TopKDesc{.input = tensor, .axis = 1, .k = 2500}, {value});
    value = b.Add(Sums(tensor, 1), {sorted[0]})[0];
  }
  return Named("sorts in many passes that share scratch", b.Return(value));
}

NamedProgram ChainOfFunctions() {
  ProgramBuilder b;
  uint32_t value = b.Input(Float32({3, 4, 5, 6}));
  const ReduceFunction functions[] = {ReduceFunction::kAverage, ReduceFunction::kLogSumExp,
                                      ReduceFunction::kMin, ReduceFunction::kL1};
  for (uint32_t axis = 0; axis < 4; ++axis) {
    value = b.Add(Reduce(b.tensor(value), {axis}, functions[axis]), {value})[0];
  }
  return Named("reductions of reductions", b.Return(value));
}

NamedProgram Independent() {
  ProgramBuilder b;
  for (const uint32_t size : {1u, 63u, 4097u}) {
    const TensorDesc tensor = Float32({size});
    b.Return(b.Add(Sums(tensor), {b.Input(tensor)})[0]);
  }
  return Named("independent nodes", b);
}

std::vector<NamedProgram> Programs() {
  return {HardmaxReduceTopK(),
          Diamond(),
          ValueUsedTwiceByOneNode(),
          OutputReadByLaterNodes(),
          UnreadIntermediates(),
          InputsInAnotherOrder(),
          Strided(),
          NarrowTypes(),
          LongSequences(),
          ManySorts(),
          ChainOfFunctions(),
          Independent()};
}

void ExpectTheBytesOfItsNodes(Device& device, const Program& program, uint64_t seed) {
  const std::vector<TensorBytes> inputs = RandomInputs(program, seed);
  const auto expected = RunNodeByNode(device, program, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto got = RunProgram(device, program, inputs);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->size(), expected->size());
  for (size_t i = 0; i < got->size(); ++i) {
    EXPECT_TRUE((*got)[i] == (*expected)[i]) << "output " << i << " of " << ToString(program);
  }
}

class ProgramRunTest : public DeviceTest {};

// False for Direct3D 12.
bool HasThreads(const Device& device) {
  return device.info().kind != DeviceKind::kSoftware && device.info().kind != DeviceKind::kHardware;
}

TEST_P(ProgramRunTest, GivesTheBytesOfItsNodes) {
  for (const auto& [name, program] : Programs()) {
    SCOPED_TRACE(name);
    ExpectTheBytesOfItsNodes(device(), program, 1);
  }
}

TEST_P(ProgramRunTest, GivesTheBytesOfItsNodesInRandomPrograms) {
  RandomProgramOptions options;
  uint64_t count = 150;
  if (!HasThreads(device())) {
    // It takes a fifth of a second to compile a kernel.
    options = {.types = {DataType::kFloat32}, .most_nodes = 8};
    count = 20;
  }
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ExpectTheBytesOfItsNodes(device(), RandomProgram(seed, options), seed);
  }
}

TEST_P(ProgramRunTest, ReportsItsSteps) {
  for (const auto& [name, program] : Programs()) {
    SCOPED_TRACE(name);
    const auto compiled = device().Compile(program);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    absl::StatusOr<Bindings> bindings = BindProgram(device(), program, RandomInputs(program, 1));
    ASSERT_TRUE(bindings.ok()) << bindings.status();
    const auto profile = std::make_shared<RunProfile>();
    bindings->profile = profile;
    ASSERT_TRUE(device().RunAndWait(*compiled, *bindings).ok());
    const ProgramReport& report = profile->report;
    std::vector<bool> is_computed(program.nodes.size(), false);
    uint64_t written = 0;
    for (size_t s = 0; s < report.steps.size(); ++s) {
      const ProgramStep& step = report.steps[s];
      for (const uint32_t op : step.operators) is_computed.at(op) = true;
      for (const uint32_t input : step.inputs) EXPECT_LT(input, s);
      EXPECT_FALSE(step.text.empty());
      EXPECT_GT(step.read_bytes, 0u);
      written += step.written_bytes;
    }
    EXPECT_THAT(is_computed, ::testing::Each(true));
    for (const uint64_t bytes : RequiredBytes(program, ValueKind::kOutput)) {
      EXPECT_GE(written + 3, bytes);  // which are rounded up to 4
    }
    EXPECT_GE(report.arena_bytes, report.live_bytes);
    EXPECT_EQ(profile->threads > 0, HasThreads(device()));
    ASSERT_EQ(profile->times.size(), report.steps.size());
    EXPECT_GT(*std::max_element(profile->times.begin(), profile->times.end()),
              absl::ZeroDuration());
    EXPECT_EQ((*compiled)->Report().steps.size(), report.steps.size());
  }
}

// Small ones share dispatches on a Direct3D 12 device.
TEST_P(ProgramRunTest, RunsManyAtTheSameTime) {
  constexpr int kRuns = 12;
  for (const auto& [name, program] : {HardmaxReduceTopK(), Strided(), ManySorts()}) {
    SCOPED_TRACE(name);
    const auto compiled = device().Compile(*Validate(program));
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    std::vector<Bindings> bindings;
    std::vector<absl::Status> ends(kRuns, absl::UnknownError("not called"));
    for (int i = 0; i < kRuns; ++i) {
      bindings.push_back(*BindProgram(device(), program, RandomInputs(program, i % 3)));
    }
    absl::BlockingCounter left(kRuns);
    for (int i = 0; i < kRuns; ++i) {
      device().Run(*compiled, bindings[i], {}, [&, i](const absl::StatusOr<RunStatistics>& result) {
        ends[i] = result.status();
        left.DecrementCount();
      });
    }
    left.Wait();
    for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(ends[i].ok()) << ends[i];
    for (int seed = 0; seed < 3; ++seed) {
      const auto expected = RunNodeByNode(device(), program, RandomInputs(program, seed));
      ASSERT_TRUE(expected.ok()) << expected.status();
      for (int i = seed; i < kRuns; i += 3) {
        EXPECT_TRUE(OutputBytes(program, bindings[i]) == *expected) << "run " << i;
      }
    }
  }
}

TEST_P(ProgramRunTest, EndsOnceIfItIsAbandoned) {
  const Program program = *Validate(ManySorts().second);
  const auto compiled = device().Compile(program);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const std::vector<TensorBytes> inputs = RandomInputs(program, 1);
  for (const bool before : {true, false}) {
    const Bindings bindings = *BindProgram(device(), program, inputs);
    std::stop_source abandoned;
    if (before) abandoned.request_stop();
    absl::Notification ended;
    absl::Status end;
    device().Run(*compiled, bindings, abandoned.get_token(),
                 [&](const absl::StatusOr<RunStatistics>& result) {
                   end = result.status();
                   ended.Notify();
                 });
    abandoned.request_stop();
    ended.WaitForNotification();
    EXPECT_TRUE(end == absl::CancelledError("The run was abandoned.") || (!before && end.ok()))
        << end;
  }
  ExpectTheBytesOfItsNodes(device(), program, 1);
}

TEST_P(ProgramRunTest, IsCachedByItsContents) {
  const auto cache = OperatorCache::Create(device(), {});
  const Program program = *Validate(Diamond().second);
  const auto first = cache->Get(program);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first->text, ToString(program));
  Program same = program;
  same.values[0].tensor.strides = {65, 1};
  EXPECT_EQ(cache->Get(same)->compiled, first->compiled);
  same.values[1].kind = ValueKind::kOutput;
  EXPECT_NE(cache->Get(same)->compiled, first->compiled);
  EXPECT_EQ(cache->statistics().misses, 2u);
}

INSTANTIATE_TEST_SUITE_P(, ProgramRunTest, ::testing::ValuesIn(TestDevices()),
                         [](const auto& tested) { return tested.param; });

// Of all nodes together, not of each.
void ExpectScratchLimit(
    const std::function<absl::StatusOr<std::unique_ptr<Device>>(uint64_t)>& open) {
  const Program program = *Validate(ManySorts().second);
  const auto device = open(uint64_t{1} << 30);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto compiled = (*device)->Compile(program);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const uint64_t bytes = (*compiled)->cost().scratch_bytes;
  for (const ProgramNode& node : program.nodes) {
    EXPECT_LT((*(*device)->Compile(node.desc))->cost().scratch_bytes, bytes);
  }
  EXPECT_TRUE((*open(bytes))->Compile(program).ok());
  const absl::Status refused = (*open(bytes - 1))->Compile(program).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("more than max_scratch_bytes (", bytes - 1, ")")));
  EXPECT_THAT(std::string(refused.message()), HasSubstr(absl::StrCat(" ", bytes, " bytes")));
}

TEST(ProgramScratch, IsLimitedOnTheReference) {
  ExpectScratchLimit(
      [](uint64_t limit) { return CreateReferenceDevice({.max_scratch_bytes = limit}); });
}

TEST(D3D12Programs, GiveTheBytesOfTheirNodesInSeparateMemory) {
  const auto device = OpenTestDevice("SoftwareCopies");
  if (!device.ok() && !RequiresDevices()) GTEST_SKIP() << device.status();
  ASSERT_TRUE(device.ok()) << device.status();
  for (const auto& [name, program] : {OutputReadByLaterNodes(), InputsInAnotherOrder()}) {
    SCOPED_TRACE(name);
    ExpectTheBytesOfItsNodes(**device, program, 1);
  }
}

TEST(D3D12Programs, EndWithTheirDeviceAndRunOnTheNext) {
  D3D12DeviceOptions options;
  options.choice = AdapterChoice::kSoftware;
  const auto device = CreateD3D12Device(options);
  if (!device.ok() && !RequiresDevices()) GTEST_SKIP() << device.status();
  ASSERT_TRUE(device.ok()) << device.status();
  const Program program = *Validate(Diamond().second);
  const auto compiled = (*device)->Compile(program);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const Bindings bindings = *BindProgram(**device, program, RandomInputs(program, 1));
  InjectDeviceLossForTest(**device);
  EXPECT_TRUE(absl::IsUnavailable((*device)->RunAndWait(*compiled, bindings).status()));
  while ((*device)->counters().resets == 0) std::this_thread::yield();
  ExpectTheBytesOfItsNodes(**device, program, 1);
}

TEST(D3D12Programs, AreNotPlannedToTheEndIfAbandoned) {
  std::stop_source abandoned;
  abandoned.request_stop();
  const auto plan = MakePlan(*Validate(ManySorts().second), PlanOptions(), abandoned.get_token());
  EXPECT_TRUE(absl::IsCancelled(plan.status())) << plan.status();
}

TEST(D3D12Programs, HaveTheScratchLimitOfAllNodes) {
  const Program program = *Validate(ManySorts().second);
  PlanOptions options;
  const auto plan = MakePlan(program, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  options.max_scratch_bytes = plan->scratch_bytes;
  EXPECT_TRUE(MakePlan(program, options).ok());
  for (const ProgramNode& node : program.nodes) {
    EXPECT_LT(MakePlan(node.desc, options)->scratch_bytes, plan->scratch_bytes);
  }
  --options.max_scratch_bytes;
  EXPECT_EQ(MakePlan(program, options).status().message(),
            absl::StrCat("The program needs ", plan->scratch_bytes,
                         " bytes of scratch memory, more than max_scratch_bytes (",
                         options.max_scratch_bytes, ")."));
}

TEST(D3D12Programs, UseEachKernelOnce) {
  const Program program = ManySorts().second;
  const auto plan = MakePlan(program, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  size_t passes = 0;
  for (const ProgramNode& node : program.nodes) passes += MakePlan(node.desc, {})->passes.size();
  EXPECT_EQ(plan->passes.size(), passes);
  for (size_t i = 0; i < plan->kernels.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(plan->kernels[i] == plan->kernels[j]);
  }
}

#if OPMILL_CPU_DEVICE
TEST(ProgramScratch, IsLimitedOnTheProcessor) {
  ExpectScratchLimit([](uint64_t limit) { return CreateCpuDevice({.max_scratch_bytes = limit}); });
}

TEST(CpuPrograms, OfSeveralNodesOrOtherBindingsHaveNoIncrementalRuns) {
  const auto cpu = CreateCpuDevice({.min_incremental_bytes = 1});
  ProgramBuilder b;
  const TensorDesc tensor = Float32({64, 1024});
  const uint32_t rows = b.Add(Reduce(tensor, {1}), {b.Input(tensor)})[0];
  b.Return(rows);
  EXPECT_GT((*cpu->Compile(b.program()))->cost().incremental_bytes, 0u);
  b.Return(b.Add(Reduce(b.tensor(rows), {0}), {rows})[0]);
  EXPECT_EQ((*cpu->Compile(b.program()))->cost().incremental_bytes, 0u);
}
#endif

}  // namespace
}  // namespace opmill
