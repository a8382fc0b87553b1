// The sources of inputs: chunks that the caller sends, and what the server reads.
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "server/execution/input_copy.h"
#include "tests/server/executor_fixture.h"

namespace opmill {
namespace {

constexpr uint32_t kCount = 3'000'000;  // elements, in three parts
constexpr uint64_t kBytes = uint64_t{kCount} * sizeof(float);

// The byte that is read at an offset.
std::byte ByteAt(uint64_t offset) { return static_cast<std::byte>(offset * 31 >> 3); }

InputSource Bytes() {
  return {.read = [](uint64_t offset, absl::Span<std::byte> to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = ByteAt(offset + i);
    return absl::OkStatus();
  }};
}

class ExecutorInputsTest : public ExecutorTest {
 protected:
  static OperatorDesc Sum() {
    const TensorDesc tensor = {DataType::kFloat32, {kCount}};
    return *Validate(ElementWiseAddDesc{.a = tensor, .b = tensor});
  }

  std::shared_ptr<Execution> BeginWith(Caller& caller, std::vector<InputSource> sources) {
    ExecutionRequest request = caller.Ask(Sum());
    request.sources = std::move(sources);
    auto begun = TryBegin(std::move(request));
    EXPECT_TRUE(begun.ok()) << begun.status();
    return begun.ok() ? *begun : nullptr;
  }

  void ExpectInputs(const Bindings& bindings, bool second_is_zero) {
    for (uint64_t i = 0; i < kBytes; ++i) {
      ASSERT_EQ(bindings.inputs[0].bytes()[i], ByteAt(i)) << i;
      ASSERT_EQ(bindings.inputs[1].bytes()[i], second_is_zero ? std::byte{0} : ByteAt(i)) << i;
    }
  }

  void ExpectSuccess(const std::shared_ptr<Execution>& execution, const Caller& caller) {
    EXPECT_EQ(caller.ready, 1);
    EXPECT_TRUE(caller.status.ok()) << caller.status;
    EXPECT_EQ(execution->report().input_bytes, 2 * kBytes);
    executor_->Finish(execution);
    ExpectIdle();
  }
};

TEST_F(ExecutorInputsTest, AreAllRead) {
  Caller caller;
  const auto execution = BeginWith(caller, {Bytes(), Bytes()});
  GatedDevice::PendingRun run = device_.Take();
  ExpectInputs(run.bindings, false);
  run.done(RunStatistics());
  run = {};
  ExpectSuccess(execution, caller);
}

TEST_F(ExecutorInputsTest, AreReadAndSent) {
  for (const bool is_sent_first : {true, false}) {
    Caller caller;
    absl::Notification may_read;
    if (!is_sent_first) may_read.Notify();
    InputSource source = Bytes();
    source.read = [&, read = source.read](uint64_t offset, absl::Span<std::byte> to) {
      may_read.WaitForNotification();
      return read(offset, to);
    };
    const auto execution = BeginWith(caller, {std::move(source), {}});
    if (!is_sent_first) {
      WaitUntil([&] { return execution->report().input_bytes == kBytes; });
      EXPECT_GT(execution->stalled(absl::InfiniteFuture()), absl::ZeroDuration());
    }
    EXPECT_TRUE(execution->uploading());
    Send(execution, 0, 1000, 1);
    Send(execution, 1000, kBytes, 1);
    if (is_sent_first) {
      EXPECT_TRUE(execution->uploading());
      EXPECT_EQ(execution->stalled(absl::InfiniteFuture()), absl::ZeroDuration());
      executor_->EndInputs(execution, "all chunks have come");
      may_read.Notify();
    }
    GatedDevice::PendingRun run = device_.Take();
    ExpectInputs(run.bindings, true);
    run.done(RunStatistics());
    run = {};
    ExpectSuccess(execution, caller);
  }
}

TEST_F(ExecutorInputsTest, NeedTheChunksOfThoseThatAreNotRead) {
  Caller caller;
  const auto execution = BeginWith(caller, {Bytes()});
  Send(execution, 0, 8, 1);
  executor_->EndInputs(execution, "end_of_inputs came");
  EXPECT_EQ(caller.ready, 1);
  EXPECT_EQ(std::string(caller.status.message()),
            "end_of_inputs came with 8 of the 12000000 bytes of input 1; 11999992 are missing.");
  WaitUntil([&] { return executor_->memory().used() == 0; });
  ExpectIdle();
}

TEST_F(ExecutorInputsTest, EndTheExecutionOnceIfTheyCannotBeRead) {
  Caller caller;
  std::atomic<int> reads = 0;
  const InputSource broken = {.read = [&reads](uint64_t, absl::Span<std::byte>) {
    ++reads;
    return absl::InvalidArgumentError("gone");
  }};
  const auto execution = BeginWith(caller, {broken, broken});
  WaitUntil([&] { return caller.ready == 1; });
  EXPECT_EQ(caller.status, absl::InvalidArgumentError("gone"));
  Send(execution, 0, 8, 1);
  WaitUntil([&] { return executor_->memory().used() == 0; });
  ExpectIdle();
  executor_.reset();  // waits for its threads
  EXPECT_LE(reads, static_cast<int>(InputCopy::kMostThreads));
}

TEST(InputCopyTest, DividesTheInputsThatAreRead) {
  constexpr uint64_t kPart = InputCopy::kPartBytes;
  const auto bytes = [](uint64_t size) {
    return TensorDesc{DataType::kUint8, {static_cast<uint32_t>(size)}, {}};
  };
  const std::vector<TensorDesc> inputs = {bytes(kPart + 1), bytes(5), bytes(kPart), bytes(7)};
  const std::vector<InputSource> sources = {Bytes(), {}, Bytes()};
  InputCopy copy(sources, inputs);
  EXPECT_EQ(copy.threads(), 3u);
  std::vector<InputCopy::Part> parts;
  while (const auto part = copy.Next()) parts.push_back(*part);
  ASSERT_EQ(parts.size(), 3u);
  const auto expect = [](const InputCopy::Part& part, size_t input, uint64_t offset, size_t size) {
    EXPECT_EQ(part.input, input);
    EXPECT_EQ(part.offset, offset);
    EXPECT_EQ(part.size, size);
  };
  expect(parts[0], 0, 0, kPart);
  expect(parts[1], 0, kPart, 1);
  expect(parts[2], 2, 0, kPart);
  EXPECT_FALSE(copy.IsLast(parts[1]));
  EXPECT_TRUE(copy.IsLast(parts[2]));
  EXPECT_TRUE(copy.IsLast(parts[0]));
  EXPECT_EQ(copy.Next(), std::nullopt);
}

TEST(InputCopyTest, HasNoPartsIfNothingIsRead) {
  const std::vector<TensorDesc> inputs = {{DataType::kUint8, {5}, {}}};
  EXPECT_EQ(InputCopy({}, inputs).threads(), 0u);
  EXPECT_EQ(InputCopy(std::vector<InputSource>(1), inputs).threads(), 0u);
}

TEST(InputCopyTest, HasFewThreads) {
  const std::vector<TensorDesc> inputs = {
      {DataType::kUint8, {static_cast<uint32_t>(InputCopy::kPartBytes * 10)}, {}}};
  EXPECT_EQ(InputCopy(std::vector<InputSource>{Bytes()}, inputs).threads(),
            InputCopy::kMostThreads);
}

}  // namespace
}  // namespace opmill
