#include "server/execution/admission.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

using Load = Admission::Load;

constexpr absl::Duration kTime = absl::Seconds(1);
constexpr char kShort[] =
    "The server has taken nearly all of the 12345 bytes (memory_limit) that it may.";

Limits SmallLimits() {
  return {.memory_limit = 12345,
          .max_tensor_bytes = 80,
          .max_bytes_in_flight = 100,
          .max_executions = 2,
          .max_queued = 3};
}

// Of a program with so many floats in its input and its output.
BufferSizes Sizes(uint32_t in, uint32_t out, uint64_t incremental_bytes = 0) {
  Program program;
  program.values = {{ValueKind::kInput, {DataType::kFloat32, {in}, {}}},
                    {ValueKind::kOutput, {DataType::kFloat32, {out}, {}}}};
  return BufferSizes::Of(program, incremental_bytes);
}
BufferSizes BytesOf(uint64_t bytes) { return {.inputs = {bytes}}; }

// A refusal to be tried again, and one that would be refused for ever.
void ExpectLater(const absl::Status& status, const std::string& sentence) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), sentence);
  EXPECT_EQ(RetryDelayOf(status), absl::Milliseconds(500));
}
void ExpectNever(const absl::Status& status, const std::string& sentence) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), sentence);
  EXPECT_FALSE(IsRetryable(status));
}

class AdmissionTest : public testing::Test {
 protected:
  absl::Status CheckExecution(uint32_t in, uint32_t out, const Load& load = {}) const {
    return admission_.CheckExecution(Sizes(in, out), kTime, load);
  }
  absl::Status CheckCompilation(uint32_t in, uint32_t out, const Load& load = {}) const {
    return admission_.CheckCompilation(Sizes(in, out), load);
  }

  const Admission admission_{SmallLimits()};
};

TEST_F(AdmissionTest, TakesWhatIsWithinEveryLimit) {
  EXPECT_EQ(CheckExecution(20, 5, {.queued = 2, .compilations = 256}), absl::OkStatus());
  EXPECT_EQ(CheckCompilation(20, 5, {.queued = 3, .compilations = 255}), absl::OkStatus());
}

TEST_F(AdmissionTest, RefusesForEverWhatNeverFits) {
  for (const bool compiles : {false, true}) {
    const auto check = [&](uint32_t in, uint32_t out) {
      return compiles ? CheckCompilation(in, out) : CheckExecution(in, out);
    };
    ExpectNever(check(21, 1), "A tensor of 84 bytes is larger than max_tensor_bytes (80).");
    ExpectNever(check(1, 21), "A tensor of 84 bytes is larger than max_tensor_bytes (80).");
    ExpectNever(check(20, 6),
                "The execution needs 104 bytes for its inputs and outputs, more than "
                "max_bytes_in_flight (100).");
  }
}

TEST_F(AdmissionTest, CountsWhatAnIncrementalRunHoldsInsteadOfItsInput) {
  const BufferSizes fits = Sizes(20, 5, 80);
  EXPECT_EQ(admission_.CheckExecution(fits, kTime, {}), absl::OkStatus());
  const BufferSizes small = Sizes(20, 20, 4);
  EXPECT_EQ(admission_.CheckExecution(small, kTime, {}), absl::OkStatus());
  EXPECT_EQ(admission_.CheckCompilation(small, {}), absl::OkStatus());
  ExpectNever(admission_.CheckExecution(Sizes(20, 20, 24), kTime, {}),
              "The execution needs 104 bytes for its outputs and for computing while its input "
              "arrives, more than max_bytes_in_flight (100).");
  ExpectNever(admission_.CheckExecution(Sizes(21, 1, 4), kTime, {}),
              "A tensor of 84 bytes is larger than max_tensor_bytes (80).");
  const Admission admission({.caller = {.bytes = 20}});
  EXPECT_EQ(admission.CheckCaller(Sizes(20, 1, 16), 0, 0), absl::OkStatus());
}

TEST_F(AdmissionTest, RefusesForNowWhatHasNoRoom) {
  ExpectLater(CheckExecution(1, 1, {.queued = 3}),
              "The server has 3 executions (max_queued) waiting for the device.");
  ExpectLater(CheckExecution(1, 1, {.short_of_memory = true}), kShort);
  ExpectLater(CheckCompilation(1, 1, {.short_of_memory = true}), kShort);
  ExpectLater(CheckCompilation(1, 1, {.compilations = 256}),
              "256 CompileOperator calls wait already.");
  ExpectLater(admission_.NoPlaceForExecution(2),
              "The server has 2 executions (max_executions) under way.");
}

TEST_F(AdmissionTest, SaysWhatIsFreeForOtherCallers) {
  ExpectLater(CheckExecution(1, 1, {.queued = 2, .max_queued = 2}),
              "The server has 3 executions (max_queued) waiting for the device, or has the last 1 "
              "free for other callers.");
  EXPECT_EQ(CheckExecution(1, 1, {.queued = 3, .max_queued = 4}), absl::OkStatus());
  ExpectLater(admission_.NoPlaceForExecution(1),
              "The server has 2 executions (max_executions) under way, or has the last 1 free for "
              "other callers.");
}

TEST_F(AdmissionTest, RefusesACallerBeyondItsLimits) {
  const Admission admission({.caller = {.executions = 2, .bytes = 100, .rate = 1.5}});
  EXPECT_EQ(admission.CheckCaller(BytesOf(60), 1, 40), absl::OkStatus());
  ExpectLater(admission.CheckCaller(BytesOf(8), 2, 8),
              "The caller has 2 executions under way, of 2 (caller_limits, executions).");
  ExpectLater(
      admission.CheckCaller(BytesOf(60), 1, 41),
      "The execution needs 60 bytes for its inputs and outputs, and the caller has 41 of 100 "
      "(caller_limits, bytes) in use.");
  ExpectNever(admission.CheckCaller(BytesOf(104), 0, 0),
              "The execution needs 104 bytes for its inputs and outputs, more than 100 "
              "(caller_limits, bytes).");
  const absl::Status too_fast = admission.TooFast(absl::Milliseconds(80));
  EXPECT_EQ(std::string(too_fast.message()),
            "The caller begins more than 1.5 executions per second (caller_limits, rate).");
  EXPECT_EQ(RetryDelayOf(too_fast), absl::Milliseconds(80));
}

TEST_F(AdmissionTest, RefusesWhatHasNoTimeLeft) {
  for (const absl::Duration left : {absl::ZeroDuration(), absl::Seconds(-1)}) {
    EXPECT_EQ(admission_.CheckExecution(Sizes(1, 1), left, {}),
              absl::DeadlineExceededError("The execution's time is over before it could begin."));
  }
  EXPECT_EQ(admission_.CheckExecution(Sizes(1, 1), absl::InfiniteDuration(), {}), absl::OkStatus());
}

// A caller should hear of what no later try can change, and of a drain before anything else.
TEST_F(AdmissionTest, NamesTheStrongestReason) {
  const Load full = {.short_of_memory = true, .queued = 3, .compilations = 256};
  Load draining = full;
  draining.draining = true;
  EXPECT_EQ(CheckExecution(21, 1, draining), Draining());
  EXPECT_EQ(CheckCompilation(21, 1, draining), Draining());
  EXPECT_TRUE(absl::IsUnavailable(Draining()));
  ExpectNever(CheckExecution(21, 1, full),
              "A tensor of 84 bytes is larger than max_tensor_bytes (80).");
  ExpectNever(CheckCompilation(21, 1, full),
              "A tensor of 84 bytes is larger than max_tensor_bytes (80).");
  ExpectLater(CheckExecution(1, 1, full), kShort);
  ExpectLater(CheckCompilation(1, 1, full), kShort);
}

TEST_F(AdmissionTest, ADeviceWithoutMemoryMayHaveSomeLaterIfOthersUseIt) {
  const absl::Status status = absl::ResourceExhaustedError("The device has no memory.");
  ExpectNever(Admission::OutOfMemory(status, 0), "The device has no memory.");
  ExpectLater(Admission::OutOfMemory(status, 1), "The device has no memory.");
}

TEST_F(AdmissionTest, WhoseRoomWasTakenMayTryAgain) {
  using Why = Admission::Displacement;
  ExpectLater(Admission::Displaced(Why::kNoInput),
              "The server is full, and gave the room of this execution, for which no input came, "
              "to another.");
  ExpectLater(Admission::Displaced(Why::kSlowInput),
              "The server is full, and gave the room of this execution, whose caller sends less "
              "than 1 MiB per second, to another.");
  ExpectLater(Admission::Displaced(Why::kUnreadResults),
              "The server is full, and gave the room of this execution, whose results were not "
              "read, to another.");
}

}  // namespace
}  // namespace opmill
