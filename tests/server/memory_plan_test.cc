#include "server/config/memory_plan.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string RefusalOf(Limits limits) {
  const absl::Status status = DivideMemory(64 * kGibibyte, {}, limits).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(MemoryPlan, PartsAddUpOnAnyMachine) {
  for (const uint64_t host : {2 * kGibibyte, 24 * kGibibyte, 2048 * kGibibyte}) {
    Limits limits;
    const auto plan = DivideMemory(host, {}, limits);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->limit_bytes, host / 4 * 3);
    EXPECT_EQ(limits.memory_limit, plan->limit_bytes);
    EXPECT_EQ(plan->process_bytes + plan->kernel_bytes + plan->operator_bytes + plan->model_bytes +
                  plan->resident_tensor_bytes + plan->transport_bytes + plan->buffer_bytes,
              plan->limit_bytes);
    EXPECT_GE(plan->live_kernels(), 32u);
    EXPECT_EQ(limits.max_inline_model_bytes, plan->model_bytes);
    EXPECT_EQ(plan->model_bytes, std::min(host / 64 * 3, kGibibyte));
    EXPECT_EQ(limits.max_resident_tensor_bytes, plan->resident_tensor_bytes);
    EXPECT_EQ(plan->resident_tensor_bytes, host / 64 * 3);
    EXPECT_GE(plan->transport_bytes, 2 * limits.max_message_bytes);
    EXPECT_EQ(limits.max_bytes_in_flight, plan->buffer_bytes / 2);
    EXPECT_EQ(limits.max_scratch_bytes, plan->buffer_bytes / 4);
  }
}

TEST(MemoryPlan, AGivenLimitAppliesAndTheOtherGetsTheRest) {
  Limits tensors = {.memory_limit = 2 * kGibibyte, .max_bytes_in_flight = 600 * kMebibyte};
  const auto plan = DivideMemory(kGibibyte, {}, tensors);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const uint64_t usable = plan->buffer_bytes - plan->buffer_bytes / 4;
  EXPECT_EQ(tensors.max_bytes_in_flight, 600 * kMebibyte);
  EXPECT_EQ(tensors.max_scratch_bytes, usable - 600 * kMebibyte);
  Limits scratch = {.memory_limit = 2 * kGibibyte, .max_scratch_bytes = 100 * kMebibyte};
  ASSERT_TRUE(DivideMemory(kGibibyte, {}, scratch).ok());
  EXPECT_EQ(scratch.max_bytes_in_flight, usable - 100 * kMebibyte);
}

TEST(MemoryPlan, ModelsOfCallersTakeWhatTheirLimitSays) {
  Limits limits = {.max_inline_model_bytes = 3 * kGibibyte};
  EXPECT_EQ(DivideMemory(64 * kGibibyte, {}, limits)->model_bytes, 3 * kGibibyte);
  EXPECT_EQ(
      RefusalOf({.memory_limit = kGibibyte, .max_inline_model_bytes = ~uint64_t{0}}),
      "--max_inline_model_bytes is 18446744073709551615 (16777216.0TiB); it must be below the "
      "--memory_limit of 1GiB.");
  EXPECT_THAT(RefusalOf({.memory_limit = kGibibyte, .max_inline_model_bytes = 900 * kMebibyte}),
              HasSubstr("compiled operators, 900MiB for models, 192MiB for messages"));
  Limits small = {.memory_limit = 704 * kMebibyte};
  EXPECT_EQ(DivideMemory(64 * kGibibyte, {}, small)->model_bytes, 10 * kMebibyte + kMebibyte / 2);
  Limits none = {.max_inline_models = 0};
  EXPECT_EQ(DivideMemory(64 * kGibibyte, {}, none)->model_bytes, 0u);
}

TEST(MemoryPlan, ARepositoryHasAnEighthAndAsMuchForItsCompiledPrograms) {
  Limits limits;
  const auto plan = DivideMemory(64 * kGibibyte, {.repository = true}, limits);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->model_bytes, 6 * kGibibyte);
  EXPECT_EQ(plan->operator_bytes, 6 * kGibibyte + 256 * kMebibyte);
  EXPECT_EQ(limits.max_total_model_bytes, 6 * kGibibyte);
  EXPECT_EQ(limits.max_inline_model_bytes, kGibibyte);
  // Others need their parts, too.
  Limits small = {.memory_limit = 704 * kMebibyte};
  EXPECT_EQ(DivideMemory(64 * kGibibyte, {.repository = true}, small)->model_bytes,
            10 * kMebibyte + kMebibyte / 2);
  Limits given = {.max_total_model_bytes = 100 * kMebibyte};
  ASSERT_TRUE(DivideMemory(64 * kGibibyte, {.repository = true}, given).ok());
  EXPECT_EQ(given.max_inline_model_bytes, 100 * kMebibyte);
}

TEST(MemoryPlan, RefusesModelsBeyondTheirLimits) {
  EXPECT_EQ(RefusalOf({.memory_limit = kGibibyte, .max_total_model_bytes = 2 * kGibibyte}),
            "--max_total_model_bytes is 2GiB; it must be below the --memory_limit of 1GiB.");
  EXPECT_EQ(
      RefusalOf({.max_total_model_bytes = kGibibyte, .max_inline_model_bytes = 2 * kGibibyte}),
      "--max_inline_model_bytes is 2GiB; it must be at most the --max_total_model_bytes of "
      "1GiB.");
}

TEST(MemoryPlan, ResidentTensorsTakeWhatTheirLimitSays) {
  Limits limits = {.max_resident_tensor_bytes = 3 * kGibibyte};
  EXPECT_EQ(DivideMemory(64 * kGibibyte, {}, limits)->resident_tensor_bytes, 3 * kGibibyte);
  EXPECT_EQ(RefusalOf({.memory_limit = kGibibyte, .max_resident_tensor_bytes = 2 * kGibibyte}),
            "--max_resident_tensor_bytes is 2GiB; it must be below the --memory_limit of 1GiB.");
  EXPECT_THAT(RefusalOf({.memory_limit = kGibibyte, .max_resident_tensor_bytes = 900 * kMebibyte}),
              HasSubstr("for models, 900MiB for tensors that stay, 192MiB for messages"));
}

TEST(MemoryPlan, RefusesALimitSmallerThanItsParts) {
  EXPECT_EQ(
      RefusalOf({.memory_limit = 512 * kMebibyte}),
      "--memory_limit is 512MiB; it must be at least 656MiB: 256MiB for the process and "
      "--max_executions (16384), 64MiB for live kernels, 16MiB for compiled operators, 192MiB for "
      "messages with a --max_message_bytes of 64MiB, and 128MiB for tensors.");
  EXPECT_THAT(RefusalOf({.memory_limit = kGibibyte, .max_message_bytes = kGibibyte}),
              StartsWith("--memory_limit is 1GiB; it must be at least "));
  EXPECT_THAT(RefusalOf({.memory_limit = kGibibyte, .max_executions = 1u << 20}),
              HasSubstr("--max_executions (1048576)"));
}

TEST(MemoryPlan, RefusesTensorsAndScratchThatDoNotFitBesideEachOther) {
  EXPECT_THAT(
      RefusalOf({.memory_limit = 2 * kGibibyte, .max_bytes_in_flight = 2 * kGibibyte}),
      StartsWith("--max_bytes_in_flight is 2GiB and --max_scratch_bytes 0; together they may be "
                 "at most "));
  EXPECT_THAT(RefusalOf({.memory_limit = 2 * kGibibyte,
                         .max_bytes_in_flight = kGibibyte,
                         .max_scratch_bytes = kGibibyte}),
              EndsWith(" with a --memory_limit of 2GiB."));
}

}  // namespace
}  // namespace opmill
