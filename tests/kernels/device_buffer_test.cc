// Buffers that stay on the device, ranges of buffers, and constants: the same bytes as through
// buffers of the host.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/base/rounding.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/kernels/random_program.h"
#include "tests/support/programs.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

constexpr uint64_t kSmallRows = 33;
constexpr uint64_t kLargeRows = 1200;  // more than D3D12 resources hold of several tensors

TensorDesc Rows(uint64_t rows) { return {DataType::kFloat32, {static_cast<uint32_t>(rows), 1025}}; }

Program Sums(uint64_t rows) {
  ProgramBuilder b;
  const TensorDesc tensor = Rows(rows);
  b.Return(b.Add(CumulativeSummationDesc{.input = tensor, .axis = 1}, {b.Input(tensor)})[0]);
  return *Validate(b.program());
}

// Reads what Sums writes.
Program Best(uint64_t rows) {
  ProgramBuilder b;
  const uint32_t input = b.Input(Rows(rows));
  const auto best = b.Add(TopKDesc{.input = Rows(rows), .axis = 1, .k = 5}, {input});
  b.Return(best[0]).Return(best[1]);
  return *Validate(b.program());
}

// An intermediate, and a constant that two nodes read, one of them beside an input.
Program WithTwoInputs() {
  ProgramBuilder b;
  const TensorDesc tensor = Rows(kSmallRows);
  const uint32_t a = b.Input(tensor);
  const uint32_t c = b.Input(tensor);
  const uint32_t sum = b.Add(ElementWiseAddDesc{.a = tensor, .b = tensor}, {a, c})[0];
  const uint32_t peaks = b.Add(HardmaxDesc{.input = tensor, .axes = {1}}, {sum})[0];
  b.Return(b.Add(ElementWiseAddDesc{.a = tensor, .b = tensor}, {peaks, c})[0]);
  return *Validate(b.program());
}

// Makes the input a constant of these bytes.
Program WithConstant(Program program, size_t value, const TensorBytes& bytes) {
  ProgramValue& constant = program.values[value];
  constant.kind = ValueKind::kConstant;
  constant.constant = ConstantData::Of(
      absl::MakeConstSpan(bytes).first(static_cast<size_t>(SpannedBytes(constant.tensor))));
  return *Validate(std::move(program));
}

// The program of WithTwoInputs with its second input as a constant.
struct Constants {
  std::vector<TensorBytes> inputs = RandomInputs(WithTwoInputs(), 5);
  Program program = WithConstant(WithTwoInputs(), 1, inputs[1]);

  absl::StatusOr<std::vector<TensorBytes>> Expected(Device& device) const {
    return RunProgram(device, WithTwoInputs(), inputs);
  }
};

std::shared_ptr<Buffer> Allocate(Device& device, uint64_t size_bytes, Residency residency) {
  auto buffer = device.Allocate(size_bytes, residency);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

absl::Status RunAll(Device& device, const std::shared_ptr<const CompiledProgram>& compiled,
                    const std::vector<Bindings>& bindings) {
  std::vector<absl::Status> ends(bindings.size());
  absl::BlockingCounter left(static_cast<int>(bindings.size()));
  for (size_t i = 0; i < bindings.size(); ++i) {
    device.Run(compiled, bindings[i], {}, [&, i](const absl::StatusOr<RunStatistics>& result) {
      ends[i] = result.status();
      left.DecrementCount();
    });
  }
  left.Wait();
  for (const absl::Status& end : ends) {
    if (!end.ok()) return end;
  }
  return absl::OkStatus();
}

class DeviceBufferTest : public DeviceTest {
 protected:
  std::shared_ptr<const CompiledProgram> Compile(const Program& program) {
    auto compiled = device().Compile(program);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return *std::move(compiled);
  }

  // Sums writes `runs` ranges of one device buffer at the same time, and Best reads them.
  void ExpectTheBytesOfAChain(uint64_t rows, int runs) {
    const Program first = Sums(rows);
    const Program second = Best(rows);
    const uint64_t size = RequiredBytes(first, ValueKind::kOutput)[0];
    const uint64_t stride = RoundUp(size, kPlacementAlignment);
    const auto middle = Allocate(device(), stride * runs, Residency::kDevice);
    std::vector<Bindings> writes;
    std::vector<Bindings> reads;
    for (int i = 0; i < runs; ++i) {
      const Range range(middle, stride * i, size);
      writes.push_back(*BindProgram(device(), first, RandomInputs(first, i)));
      reads.push_back(*BindProgram(device(), second, {}));
      writes.back().outputs = {range};
      reads.back().inputs = {range};
    }
    ASSERT_EQ(RunAll(device(), Compile(first), writes), absl::OkStatus());
    ASSERT_EQ(RunAll(device(), Compile(second), reads), absl::OkStatus());
    for (int i = 0; i < runs; ++i) {
      const auto sums = RunProgram(device(), first, RandomInputs(first, i));
      ASSERT_TRUE(sums.ok()) << sums.status();
      const auto expected = RunProgram(device(), second, *sums);
      ASSERT_TRUE(expected.ok()) << expected.status();
      EXPECT_TRUE(OutputBytes(second, reads[i]) == *expected) << "run " << i;
    }
  }
};

TEST_P(DeviceBufferTest, FeedsTheOutputOfOneRunToTheNext) {
  ExpectTheBytesOfAChain(kSmallRows, 1);
  ExpectTheBytesOfAChain(kLargeRows, 1);
}

TEST_P(DeviceBufferTest, IsWrittenAndReadByManyRunsAtTheSameTime) {
  ExpectTheBytesOfAChain(kSmallRows, 20);
  ExpectTheBytesOfAChain(kLargeRows, 3);
}

// Sums turn into sums of sums, from one range to the other and back.
TEST_P(DeviceBufferTest, IsReadAndWrittenByOneRun) {
  constexpr int kRuns = 6;
  const Program program = Sums(kSmallRows);
  const uint64_t size = RequiredBytes(program, ValueKind::kOutput)[0];
  const uint64_t stride = RoundUp(size, kPlacementAlignment);
  const auto buffer = Allocate(device(), 2 * stride, Residency::kDevice);
  const Range halves[] = {{buffer, 0, size}, {buffer, stride, size}};
  const auto compiled = Compile(program);
  std::vector<TensorBytes> expected = RandomInputs(program, 1);
  const Bindings ends = *BindProgram(device(), program, expected);
  for (int i = 0; i < kRuns; ++i) {
    Bindings bindings = {.inputs = {halves[i % 2]}, .outputs = {halves[(i + 1) % 2]}};
    if (i == 0) bindings.inputs = ends.inputs;
    if (i == kRuns - 1) bindings.outputs = ends.outputs;
    const auto result = device().RunAndWait(compiled, bindings);
    ASSERT_TRUE(result.ok()) << result.status();
    expected = *RunProgram(device(), program, expected);
  }
  EXPECT_TRUE(OutputBytes(program, ends) == expected);
}

TEST_P(DeviceBufferTest, IsReadByAllRunsOfAProgram) {
  const Program program = WithTwoInputs();
  const std::vector<TensorBytes> inputs = RandomInputs(program, 1);
  const Program sums = Sums(kSmallRows);
  const auto shared = Allocate(device(), inputs[1].size(), Residency::kDevice);
  Bindings write = *BindProgram(device(), sums, {inputs[1]});
  write.outputs = {shared};
  ASSERT_TRUE(device().RunAndWait(Compile(sums), write).ok());
  const TensorBytes summed = (*RunProgram(device(), sums, {inputs[1]}))[0];
  std::vector<Bindings> bindings;
  for (int i = 0; i < 12; ++i) {
    bindings.push_back(*BindProgram(device(), program, RandomInputs(program, i)));
    bindings.back().inputs[1] = shared;
  }
  ASSERT_EQ(RunAll(device(), Compile(program), bindings), absl::OkStatus());
  for (int i = 0; i < 12; ++i) {
    const auto expected = RunProgram(device(), program, {RandomInputs(program, i)[0], summed});
    EXPECT_TRUE(OutputBytes(program, bindings[i]) == *expected) << "run " << i;
  }
}

TEST_P(DeviceBufferTest, RangesStartAnywhereInBuffersOfTheHost) {
  const Program program = WithTwoInputs();
  const std::vector<TensorBytes> inputs = RandomInputs(program, 2);
  const uint64_t size = inputs[0].size();
  const uint64_t stride = RoundUp(size, kPlacementAlignment);
  const auto upload = Allocate(device(), 3 * stride, Residency::kUpload);
  const auto readback = Allocate(device(), 3 * stride, Residency::kReadback);
  std::memset(upload->bytes().data(), 0x5A, upload->bytes().size());
  std::memset(readback->bytes().data(), 0xA5, readback->bytes().size());
  const Bindings bindings = {.inputs = {{upload, 2 * stride, size}, {upload, stride, size}},
                             .outputs = {{readback, stride, size}}};
  for (int i = 0; i < 2; ++i) {
    std::memcpy(bindings.inputs[i].bytes().data(), inputs[i].data(), size);
  }
  const auto result = device().RunAndWait(Compile(program), bindings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(OutputBytes(program, bindings) == *RunProgram(device(), program, inputs));
  const auto is_untouched = [&](uint64_t begin, uint64_t end) {
    return std::all_of(readback->bytes().begin() + begin, readback->bytes().begin() + end,
                       [](std::byte byte) { return byte == std::byte{0xA5}; });
  };
  EXPECT_TRUE(is_untouched(0, stride));
  EXPECT_TRUE(is_untouched(2 * stride, 3 * stride));
}

TEST_P(DeviceBufferTest, HasBytesUnlessTheAdapterHasItsOwnMemory) {
  const auto buffer = Allocate(device(), 1000, Residency::kDevice);
  EXPECT_EQ(buffer->size_bytes(), 1000u);
  EXPECT_EQ(buffer->residency(), Residency::kDevice);
  EXPECT_EQ(buffer->bytes().size(), device().info().unified_memory ? 1000u : 0u);
}

TEST_P(DeviceBufferTest, RefusesRangesThatNoRunCanUse) {
  const Program program = Sums(1);
  const auto compiled = Compile(program);
  const uint64_t size = RequiredBytes(program, ValueKind::kOutput)[0];
  ASSERT_EQ(size, 4100u);
  const auto upload = Allocate(device(), 5000, Residency::kUpload);
  const auto readback = Allocate(device(), 5000, Residency::kReadback);
  const auto both = Allocate(device(), 5000, Residency::kDevice);
  struct Case {
    Range input;
    Range output;
    std::string sentence;
  };
  const Case cases[] = {
      {upload, {readback, 0, 4099}, "outputs[0] has 4099 bytes, and needs 4100."},
      {{}, readback, "inputs[0] has 0 bytes, and needs 4100."},
      {{upload, 128, size},
       readback,
       "inputs[0] starts at byte 128 of its buffer, which is not a multiple of 256."},
      {upload,
       {readback, 1024, size},
       "outputs[0] has 4100 bytes from byte 1024 of a buffer of 5000 bytes."},
      {{upload, ~uint64_t{255}, size},
       readback,
       "inputs[0] has 4100 bytes from byte 18446744073709551360 of a buffer of 5000 bytes."},
      {readback, readback, "inputs[0] is in a buffer for outputs."},
      {upload, upload, "outputs[0] is in a buffer for inputs."},
      {both, both, "outputs[0] overlaps inputs[0]."},
      {both, {both, 768, size}, "outputs[0] overlaps inputs[0]."},
  };
  for (const Case& c : cases) {
    const Bindings bindings = {.inputs = {c.input}, .outputs = {c.output}};
    const absl::Status status = device().RunAndWait(compiled, bindings).status();
    EXPECT_EQ(status, absl::InvalidArgumentError(c.sentence));
  }
}

TEST_P(DeviceBufferTest, ConstantsGiveTheBytesOfInputs) {
  const Constants c;
  const auto expected = c.Expected(device());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto compiled = Compile(c.program);
  EXPECT_GE(compiled->cost().kept_bytes, c.inputs[1].size());
  for (const int runs : {1, 12}) {
    std::vector<Bindings> bindings;
    for (int i = 0; i < runs; ++i) {
      bindings.push_back(*BindProgram(device(), c.program, {c.inputs[0]}));
    }
    ASSERT_EQ(RunAll(device(), compiled, bindings), absl::OkStatus());
    for (const Bindings& each : bindings) {
      EXPECT_TRUE(OutputBytes(c.program, each) == *expected);
    }
  }
}

TEST_P(DeviceBufferTest, ConstantsAreAllThatAProgramReads) {
  const Program sums = Sums(kLargeRows);
  const std::vector<TensorBytes> inputs = RandomInputs(sums, 3);
  const Program program = WithConstant(sums, 0, inputs[0]);
  const auto got = RunProgram(device(), program, {});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(*got == *RunProgram(device(), sums, inputs));
}

TEST_P(DeviceBufferTest, ConstantsAreInRandomProgramsToo) {
  const bool compiles_kernels = device().info().kind == DeviceKind::kSoftware ||
                                device().info().kind == DeviceKind::kHardware;
  for (uint64_t seed = 100; seed < (compiles_kernels ? 103 : 140); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Program program = RandomProgram(seed, {.types = {DataType::kFloat32}, .most_nodes = 6});
    const std::vector<TensorBytes> inputs = RandomInputs(program, seed);
    const auto expected = RunProgram(device(), program, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::vector<TensorBytes> bound;
    for (size_t i = 0, input = 0; i < program.values.size(); ++i) {
      if (program.values[i].kind != ValueKind::kInput) continue;
      if (input % 2 == 0) {
        program = WithConstant(std::move(program), i, inputs[input]);
      } else {
        bound.push_back(inputs[input]);
      }
      ++input;
    }
    const auto got = RunProgram(device(), program, bound);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(*got == *expected);
  }
}

TEST_P(DeviceBufferTest, ProgramsAreCachedByTheContentsOfTheirConstants) {
  const auto cache = OperatorCache::Create(device(), {});
  Constants c;
  const auto first = cache->Get(c.program);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(cache->Get(WithConstant(WithTwoInputs(), 1, c.inputs[1]))->compiled, first->compiled);
  c.inputs[1].back() ^= std::byte{1};
  const Program other = WithConstant(WithTwoInputs(), 1, c.inputs[1]);
  const auto second = cache->Get(other);
  EXPECT_NE(second->compiled, first->compiled);
  const Bindings bindings = *BindProgram(device(), other, {c.inputs[0]});
  ASSERT_TRUE(device().RunAndWait(second->compiled, bindings).ok());
  EXPECT_TRUE(OutputBytes(other, bindings) == *c.Expected(device()));
}

std::vector<std::string> DevicesAndCopies() {
  std::vector<std::string> names = TestDevices();
  names.push_back("SoftwareCopies");
  return names;
}

INSTANTIATE_TEST_SUITE_P(, DeviceBufferTest, ::testing::ValuesIn(DevicesAndCopies()),
                         [](const auto& tested) { return tested.param; });

class DeviceBufferLossTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto device =
        CreateD3D12Device({.choice = AdapterChoice::kSoftware, .allow_unified_memory = GetParam()});
    if (!device.ok() && !RequiresDevices()) GTEST_SKIP() << device.status();
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  void Lose() {
    const uint64_t before = device_->counters().resets;
    InjectDeviceLossForTest(*device_);
    while (device_->counters().resets == before) std::this_thread::yield();
  }

  // Runs let go of their buffers after their callbacks.
  uint64_t BytesInUse() {
    uint64_t bytes = device_->counters().buffer_bytes_in_use;
    for (int unchanged = 0; unchanged < 20; ++unchanged) {
      absl::SleepFor(absl::Milliseconds(1));
      const uint64_t now = device_->counters().buffer_bytes_in_use;
      if (std::exchange(bytes, now) != now) unchanged = 0;
    }
    return bytes;
  }

  std::unique_ptr<Device> device_;
};

TEST_P(DeviceBufferLossTest, SaysThatTheBufferIsLost) {
  const Program program = Sums(kSmallRows);
  const auto buffer =
      Allocate(*device_, RequiredBytes(program, ValueKind::kInput)[0], Residency::kDevice);
  Lose();
  const auto compiled = device_->Compile(program);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const Bindings bound = *BindProgram(*device_, program, RandomInputs(program, 1));
  Bindings reads = bound;
  reads.inputs = {buffer};
  EXPECT_EQ(device_->RunAndWait(*compiled, reads).status(),
            absl::UnavailableError("inputs[0] was in the memory of a device that is lost."));
  Bindings writes = bound;
  writes.outputs = {buffer};
  EXPECT_EQ(device_->RunAndWait(*compiled, writes).status(),
            absl::UnavailableError("outputs[0] was in the memory of a device that is lost."));
}

TEST_P(DeviceBufferLossTest, ProgramsWithConstantsAreCompiledAgain) {
  const Constants c;
  const auto expected = c.Expected(*device_);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto lost = device_->Compile(c.program);
  ASSERT_TRUE(lost.ok()) << lost.status();
  Lose();
  const Bindings bindings = *BindProgram(*device_, c.program, {c.inputs[0]});
  EXPECT_TRUE(absl::IsUnavailable(device_->RunAndWait(*lost, bindings).status()));
  const auto got = RunProgram(*device_, (*lost)->program(), {c.inputs[0]});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(*got == *expected);
}

TEST_P(DeviceBufferLossTest, TheMemoryOfConstantsIsReleased) {
  const Program program = WithConstant(Sums(kLargeRows), 0, RandomInputs(Sums(kLargeRows), 1)[0]);
  const uint64_t size = RequiredBytes(program, ValueKind::kConstant)[0];
  // The device has constants of its own.
  ASSERT_TRUE(RunProgram(*device_, Sums(1), RandomInputs(Sums(1), 1)).ok());
  const uint64_t before = BytesInUse();
  {
    const auto compiled = device_->Compile(program);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const Bindings bindings = *BindProgram(*device_, program, {});
    ASSERT_TRUE(device_->RunAndWait(*compiled, bindings).ok());
    const uint64_t used = BytesInUse() - before;
    EXPECT_GE(used, 2 * size) << "the constant, and the output";
    EXPECT_LT(used, 2 * size + 100'000) << "no copy of the constant in another memory";
  }
  EXPECT_EQ(BytesInUse(), before);
}

INSTANTIATE_TEST_SUITE_P(, DeviceBufferLossTest, ::testing::Bool(), [](const auto& tested) {
  return tested.param ? "UnifiedMemory" : "SeparateMemory";
});

}  // namespace
}  // namespace opmill
