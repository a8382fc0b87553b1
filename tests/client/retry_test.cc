#include "client/retry.h"

#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using Result = absl::StatusOr<v1::ExecutionStatistics>;

Result GoneFor(absl::Duration delay) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(delay)));
  absl::Status status = absl::UnavailableError("The server drains.");
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo",
                    absl::Cord(info.SerializeAsString()));
  return status;
}

TEST(RetryTest, RetriesWhileTheServerIsUnavailable) {
  int attempts = 0;
  const Result result =
      Retry(5, absl::InfiniteDuration(), absl::SleepFor, [&](absl::Duration) -> Result {
        if (++attempts < 4) return GoneFor(absl::Milliseconds(1));
        v1::ExecutionStatistics statistics;
        statistics.set_batch_size(7);
        return statistics;
      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->batch_size(), 7u);
  EXPECT_EQ(attempts, 4);
}

TEST(RetryTest, GivesUpAfterMaxAttempts) {
  int attempts = 0;
  const Result result = Retry(3, absl::InfiniteDuration(), absl::SleepFor, [&](absl::Duration) {
    ++attempts;
    return GoneFor(absl::Milliseconds(1));
  });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(attempts, 3);
}

TEST(RetryTest, LeavesOtherFailuresAlone) {
  int attempts = 0;
  const Result result =
      Retry(3, absl::InfiniteDuration(), absl::SleepFor, [&](absl::Duration) -> Result {
        ++attempts;
        return absl::InvalidArgumentError("k is 0.");
      });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(attempts, 1);
}

TEST(RetryTest, WaitsLongerEachTimeUnlessTheServerSaysHowLong) {
  for (const bool server_says : {false, true}) {
    std::vector<absl::Duration> delays;
    const Result result = Retry(
        6, absl::InfiniteDuration(), [&](absl::Duration delay) { delays.push_back(delay); },
        [&](absl::Duration) -> Result {
          if (server_says) return GoneFor(absl::Milliseconds(100));
          return absl::UnavailableError("The connection broke.");
        });
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
    ASSERT_EQ(delays.size(), 5u);
    constexpr int kMilliseconds[] = {250, 500, 1000, 2000, 2000};
    for (size_t i = 0; i < delays.size(); ++i) {
      const absl::Duration middle = absl::Milliseconds(server_says ? 100 : kMilliseconds[i]);
      EXPECT_GE(delays[i], 0.8 * middle);
      EXPECT_LE(delays[i], 1.2 * middle);
    }
  }
}

TEST(RetryTest, StaysWithinTheTimeoutAndPassesTheRest) {
  constexpr absl::Duration kTimeout = absl::Milliseconds(1500);
  std::vector<absl::Duration> remaining;
  const absl::Time begun = absl::Now();
  const Result result = Retry(100, kTimeout, absl::SleepFor, [&](absl::Duration left) {
    remaining.push_back(left);
    return GoneFor(absl::Milliseconds(500));
  });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(absl::Now() - begun, kTimeout);
  ASSERT_GE(remaining.size(), 2u);
  EXPECT_LE(remaining[0], kTimeout);
  EXPECT_LE(remaining[1], remaining[0] - absl::Milliseconds(400));
}

}  // namespace
}  // namespace opmill
