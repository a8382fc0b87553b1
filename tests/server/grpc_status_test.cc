#include "server/api/grpc_status.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

template <typename Detail>
std::optional<Detail> DetailOf(const google::rpc::Status& status) {
  std::optional<Detail> found;
  for (const auto& any : status.details()) {
    Detail detail;
    if (!any.UnpackTo(&detail)) continue;
    EXPECT_FALSE(found.has_value()) << "given twice";
    found = detail;
  }
  return found;
}

TEST(ToRpcStatus, AddsNothingToSuccess) {
  EXPECT_EQ(ToRpcStatus(absl::OkStatus()).SerializeAsString(), "");
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(ToRpcStatus, GivesEveryErrorItsReason) {
  const std::pair<absl::StatusCode, std::string> reasons[] = {
      {absl::StatusCode::kInvalidArgument, "INVALID_REQUEST"},
      {absl::StatusCode::kFailedPrecondition, "UNSUPPORTED_AT_FEATURE_LEVEL"},
      {absl::StatusCode::kResourceExhausted, "LIMIT_REACHED"},
      {absl::StatusCode::kUnavailable, "NOT_AVAILABLE"},
      {absl::StatusCode::kDeadlineExceeded, "DEADLINE_PASSED"},
      {absl::StatusCode::kCancelled, "CANCELLED"},
      {absl::StatusCode::kInternal, "SERVER_FAULT"},
      {absl::StatusCode::kUnknown, "SERVER_FAULT"},
  };
  for (const auto& [code, reason] : reasons) {
    const google::rpc::Status status = ToRpcStatus(absl::Status(code, "A sentence."));
    EXPECT_EQ(status.code(), static_cast<int>(code));
    EXPECT_EQ(status.message(), "A sentence.");
    const auto info = DetailOf<google::rpc::ErrorInfo>(status);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->domain(), "opmill");
    EXPECT_EQ(info->reason(), reason);
    EXPECT_FALSE(DetailOf<google::rpc::BadRequest>(status).has_value());
    EXPECT_EQ(DetailOf<google::rpc::RetryInfo>(status).has_value(),
              code == absl::StatusCode::kUnavailable);
  }
}

TEST(ToRpcStatus, NamesTheField) {
  const auto bad = DetailOf<google::rpc::BadRequest>(
      ToRpcStatus(InvalidField("operator.reduce.axes[1]", "axes[1] is bad.")));
  ASSERT_TRUE(bad.has_value());
  ASSERT_EQ(bad->field_violations_size(), 1);
  EXPECT_EQ(bad->field_violations(0).field(), "operator.reduce.axes[1]");
  EXPECT_EQ(bad->field_violations(0).description(), "axes[1] is bad.");
}

TEST(ToRpcStatus, AddsTheRetryDelay) {
  const absl::Status full = absl::ResourceExhaustedError("Full.");
  EXPECT_FALSE(IsRetryable(full));
  EXPECT_FALSE(DetailOf<google::rpc::RetryInfo>(ToRpcStatus(full)).has_value());
  const absl::Status later = WithRetryDelay(full, absl::Milliseconds(1500));
  EXPECT_TRUE(IsRetryable(later));
  const auto retry = DetailOf<google::rpc::RetryInfo>(ToRpcStatus(later));
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->retry_delay().seconds(), 1);
  EXPECT_EQ(retry->retry_delay().nanos(), 500'000'000);
  EXPECT_TRUE(IsRetryable(absl::UnavailableError("Gone.")));
}

TEST(ToGrpcStatus, CarriesTheRpcStatusAsItsDetails) {
  const absl::Status status = InvalidField("k", "k (0) is below 1.");
  const grpc::Status grpc_status = ToGrpcStatus(status);
  EXPECT_EQ(grpc_status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(grpc_status.error_message(), "k (0) is below 1.");
  EXPECT_EQ(grpc_status.error_details(), ToRpcStatus(status).SerializeAsString());
}

TEST(UnderPath, PutsThePathInFrontOfTheFieldAndKeepsTheRest) {
  const absl::Status status = UnderPath(
      "begin",
      UnderPath("operator.top_k", WithRetryDelay(InvalidField("k", "Bad."), absl::Seconds(1))));
  EXPECT_EQ(FieldOf(status), "begin.operator.top_k.k");
  EXPECT_EQ(status.message(), "Bad.");
  EXPECT_TRUE(IsRetryable(status));
  EXPECT_EQ(UnderPath("begin", absl::InternalError("Oh.")), absl::InternalError("Oh."));
}

}  // namespace
}  // namespace opmill
